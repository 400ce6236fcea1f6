"""Proctor on one machine, as a newcomer meets it: `make run`, and the stack by `up`, `status` and `down`."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from proctor.exit_codes import ExitCode
from proctor.stack.state import is_locked
from tests.e2e.harness.entry_points import CommandEnd, proctor_with
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.keyed_suite import write_keyed_suite
from tests.harness.model_server_process import ModelServerProcess, model_server_process

ROWS = 150
CHILDREN = {"postgres", "nats", "results", "scheduler", "gateway", "worker.remote-openai"}


class Machine:
    """A state folder and a model server, and commands that know of both."""

    def __init__(self, state_dir: Path, server: ModelServerProcess) -> None:
        self.state_dir = state_dir
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

    async def proctor(self, line: str) -> CommandEnd:
        return await proctor_with(self._environment, line)

    async def make_run(self, line: str) -> CommandEnd:
        """What the target `run` of the Makefile calls."""
        return await proctor_with(self._environment, line, "proctor.cli.quick_run")

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


async def test_make_run_examines_a_model_and_leaves_nothing_behind(machine: Machine) -> None:
    end = await machine.make_run("--suite keyed --model openai/fake --json")
    assert end.code == 0, end.err
    summary = end.document["summary"]
    assert (summary["answered"], summary["failed"]) == (ROWS, 0)
    assert summary["tasks"][0]["metrics"][0]["mean"] == 1.0
    assert not is_locked(machine.state_dir)
    assert machine.left_behind() == []


async def test_make_run_with_an_unknown_suite_is_one_sentence(machine: Machine) -> None:
    end = await machine.make_run("--suite glu --model openai/fake")
    assert end.code == ExitCode.NOT_FOUND
    assert "Invalid benchmark suite. Supported: keyed" in end.err
    assert "Traceback" not in end.err
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
