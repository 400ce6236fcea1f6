"""Proctor on one machine, as a newcomer meets it: `try`, and the stack by `up`, `status` and `down`."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from proctor.exit_codes import ExitCode
from proctor.stack.state import is_locked
from tests.e2e.harness.entry_points import proctor_with
from tests.fakes.eventually import eventually
from tests.fakes.stack.forked_commands import Finished
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.keyed_suite import write_keyed_suite
from tests.harness.model_server_process import ModelServerProcess, model_server_process
from tests.harness.processes import bound, end

ROWS = 150
CHILDREN = {"postgres", "nats", "results", "scheduler", "gateway", "worker.remote-openai"}


class Machine:
    """A state folder and a model server, and commands that know of both."""

    def __init__(self, state_dir: Path, server: ModelServerProcess) -> None:
        self.state_dir = state_dir
        self.server = server
        suites = state_dir.parent / "suites"
        write_keyed_suite(suites, ROWS, is_long=False)
        self._environment = {
            "PROCTOR_STATE_DIR": str(state_dir),
            "PROCTOR_SCHEDULER_SUITES_DIR": str(suites),
            "PROCTOR_GATEWAY_HTTP_ADDRESS": "127.0.0.1:0",
            "PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:0",
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "test",
        }

    async def proctor(self, line: str) -> Finished:
        return await proctor_with(self._environment, line)

    @asynccontextmanager
    async def trying(self, line: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """`proctor try`, which is still at work."""
        process = await asyncio.create_subprocess_exec(
            *bound(sys.executable, "-m", "proctor.cli", "try", *shlex.split(line)),
            env={"PATH": os.environ["PATH"], **self._environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            await end(process, 60)

    def left_behind(self) -> list[psutil.Process]:
        """Processes that were started with this machine's state folder."""
        return [process for process in psutil.process_iter() if self._belongs(process)]

    def _belongs(self, process: psutil.Process) -> bool:
        try:
            reported = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            return False
        return any(str(self.state_dir) in word for word in reported)


@pytest.fixture
def state_dir() -> Iterator[Path]:
    with temporary_state_dir() as folder:
        yield folder


@pytest.fixture
async def machine(state_dir: Path) -> AsyncIterator[Machine]:
    async with model_server_process() as server:
        machine = Machine(state_dir, server)
        yield machine
        # What a failed test left up; elsewhere this does nothing.
        await machine.proctor("down")


@pytest.mark.thorough
async def test_trial_evaluates_a_model_and_leaves_nothing_behind(machine: Machine) -> None:
    ended = await machine.proctor("try --suite keyed --model openai/fake --json")
    assert ended.code == 0, ended.err
    summary = ended.document["summary"]
    assert (summary["answered"], summary["failed"]) == (ROWS, 0)
    assert summary["tasks"][0]["metrics"][0]["mean"] == 1.0
    assert not is_locked(machine.state_dir)
    assert machine.left_behind() == []


@pytest.mark.thorough
async def test_trial_of_an_unknown_suite_is_one_sentence(machine: Machine) -> None:
    ended = await machine.proctor("try --suite glu --model openai/fake")
    assert ended.code == ExitCode.NOT_FOUND
    assert "Invalid benchmark suite. Supported: keyed" in ended.err
    assert "Traceback" not in ended.err
    assert machine.left_behind() == []


async def line_with(process: asyncio.subprocess.Process, part: str) -> str:
    """The first line of its output with that part."""
    assert process.stdout is not None
    async with asyncio.timeout(300):
        async for line in process.stdout:
            if part in line.decode():
                return line.decode()
    raise AssertionError(f"It ended without saying {part}.")


@pytest.mark.thorough
async def test_killed_trial_goes_on_with_its_run_then_serves_until_it_is_told_to_stop(
    machine: Machine,
) -> None:
    await machine.server.control(latency_seconds=600)
    async with machine.trying("--suite keyed --model openai/fake") as process:
        accepted = await line_with(process, "was accepted")
        process.kill()
    run_id = accepted.split()[1]
    await eventually(lambda: not machine.left_behind(), "the stack of the killed trial has ended", 60.0)

    await machine.server.control(latency_seconds=0)
    async with machine.trying("--suite keyed --model openai/fake --serve") as process:
        assert run_id in await line_with(process, "was accepted")
        await line_with(process, "run --suite glue --model openai/fake")
        await line_with(process, "The stack keeps serving")
        shown = await machine.proctor(f"results {run_id} --json")
        assert shown.document["summary"]["answered"] == ROWS
        # The run has shown its end, so the same order is a new run.
        again = await machine.proctor("try --suite keyed --model openai/fake --json")
        assert again.document["run"]["run_id"] != run_id
        other = await machine.proctor("try --suite keyed --model ollama/llama3.2")
        assert other.code == ExitCode.NOT_FOUND
        assert "It was started for other models: stop it with" in other.err
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), 300)
    assert process.returncode == 0
    assert machine.left_behind() == []


async def test_stack_goes_up_serves_and_goes_down_and_keeps_its_runs(machine: Machine) -> None:
    up = await machine.proctor("up --model openai/fake --detach --json")
    assert up.code == 0, up.err
    ran = await machine.proctor("run --suite keyed --model openai/fake --limit 20 --json")
    assert ran.code == 0, ran.err
    status = await machine.proctor("status --json")
    assert set(status.document["stack"]["children"]) == CHILDREN
    assert (await machine.proctor("up --model openai/fake --detach")).code == 7
    assert (await machine.proctor("down --json")).document == {"stopped": True}
    assert machine.left_behind() == []
    assert (await machine.proctor("down --json")).document == {"stopped": False}

    assert (await machine.proctor("up --model openai/fake --detach")).code == 0
    run_id = ran.document["run"]["run_id"]
    again = await machine.proctor(f"results {run_id} --json")
    assert again.document["summary"] == ran.document["summary"]
    assert (await machine.proctor("down")).code == 0
