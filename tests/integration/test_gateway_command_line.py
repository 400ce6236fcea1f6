"""The command line as a script sees it: exit codes, JSON on stdout, Ctrl-C; against a real gateway."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor.v1 import run_pb2, summary_pb2
from services.common.errors import ErrorKind
from tests.fakes.backend_services import FakeScheduler, refused
from tests.fakes.eventually import eventually
from tests.fakes.gateway_stand import GatewayStand, gateway_stand

ROOT = Path(__file__).parents[2]
ORDER = ("run", "--suite", "glue", "--model", "vllm/starter", "--limit", "4")


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    def __init__(self, gateway: str, state_dir: Path) -> None:
        own = {"PROCTOR_GATEWAY": gateway, "PROCTOR_STATE_DIR": str(state_dir), "PYTHONPATH": str(ROOT)}
        self._environment = {**os.environ, **own}

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "proctor.cli",
            *arguments,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *arguments: str) -> Finished:
        return await ended(await self.start(*arguments))


async def ended(process: asyncio.subprocess.Process) -> Finished:
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def stand() -> AsyncIterator[GatewayStand]:
    async with gateway_stand() as running:
        yield running


@pytest.fixture
def proctor(stand: GatewayStand, tmp_path: Path) -> CommandLine:
    return CommandLine(stand.grpc, tmp_path)


async def submitted_run(scheduler: FakeScheduler) -> run_pb2.Run:
    """The run that a command has ordered and watches."""
    await eventually(lambda: scheduler.watches_open > 0, "a run was ordered and is watched")
    return next(iter(scheduler.runs.values()))


def finish(stand: GatewayStand, run: run_pb2.Run, state: run_pb2.RunState.ValueType) -> None:
    figure = summary_pb2.MetricFigure(metric="acc", mean=0.5, ci_low=0.2, ci_high=0.8, n=4)
    task = summary_pb2.TaskSummary(task="sst2", answered=4, metrics=[figure])
    stand.results.summaries[run.run_id] = summary_pb2.RunSummary(run_id=run.run_id, tasks=[task], total=4)
    run.progress.total = run.progress.completed = 4
    run.state = state
    stand.scheduler.put(run)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (run_pb2.RUN_STATE_COMPLETED, 0),
        (run_pb2.RUN_STATE_FAILED, 1),
        (run_pb2.RUN_STATE_CANCELLED, 5),
    ],
)
async def test_run_ends_with_the_code_of_its_state(
    stand: GatewayStand, proctor: CommandLine, state: run_pb2.RunState.ValueType, code: int
) -> None:
    process = await proctor.start(*ORDER)
    finish(stand, await submitted_run(stand.scheduler), state)
    finished = await ended(process)
    assert finished.code == code
    assert "0.5000 ± 0.3000" in finished.out
    assert finished.err == ""


async def test_json_is_one_document_on_stdout_and_progress_goes_to_stderr(
    stand: GatewayStand, proctor: CommandLine
) -> None:
    process = await proctor.start(*ORDER, "--json")
    run = await submitted_run(stand.scheduler)
    finish(stand, run, run_pb2.RUN_STATE_COMPLETED)
    finished = await ended(process)
    assert finished.document["run"]["run_id"] == run.run_id
    assert finished.document["summary"]["tasks"][0]["metrics"][0]["mean"] == 0.5
    assert "was accepted" in finished.err


async def test_detached_run_goes_on(stand: GatewayStand, proctor: CommandLine) -> None:
    finished = await proctor(*ORDER, "--detach", "--json")
    assert finished.code == 0
    assert finished.document["run"]["state"] == "pending"
    assert stand.scheduler.submitted[0].order.limit == 4


async def test_ctrl_c_without_a_terminal_detaches(stand: GatewayStand, proctor: CommandLine) -> None:
    process = await proctor.start(*ORDER)
    run = await submitted_run(stand.scheduler)
    process.send_signal(signal.SIGINT)
    finished = await ended(process)
    assert finished.code == 130
    assert f"The run {run.run_id} goes on." in finished.out
    assert stand.scheduler.runs[run.run_id].state == run_pb2.RUN_STATE_PENDING


async def test_run_that_failed_before_planning_says_why(stand: GatewayStand, proctor: CommandLine) -> None:
    process = await proctor.start(*ORDER)
    run = await submitted_run(stand.scheduler)
    run.state, run.error.message = run_pb2.RUN_STATE_FAILED, "Failed to load GLUE dataset: no rows."
    stand.scheduler.put(run)
    finished = await ended(process)
    assert finished.code == 1
    assert "failed: Failed to load GLUE dataset: no rows." in finished.out


async def test_refused_order_is_one_sentence_and_code_2(stand: GatewayStand, proctor: CommandLine) -> None:
    stand.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_SUITE", "There is no suite glu.")
    finished = await proctor(*ORDER)
    assert (finished.code, finished.out, finished.err) == (2, "", "There is no suite glu.\n")
    finished = await proctor(*ORDER, "--json")
    assert finished.document == {"error": {"reason": "UNKNOWN_SUITE", "message": "There is no suite glu."}}


@pytest.mark.parametrize(
    "arguments", [("run",), ("nonsense",), ("runs", "--state", "lost"), (*ORDER, "--param", "x")]
)
async def test_wrong_usage_is_code_2(proctor: CommandLine, arguments: tuple[str, ...]) -> None:
    assert (await proctor(*arguments)).code == 2


@pytest.mark.parametrize("command", ["watch", "results", "cancel", "retry"])
async def test_unknown_run_is_code_4(proctor: CommandLine, command: str) -> None:
    finished = await proctor(command, "r9")
    assert finished.code == 4
    assert "Run r9 not found." in finished.err


@pytest.mark.parametrize("arguments", [("runs",), ("watch", "r1")])
async def test_no_gateway_is_code_3(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    finished = await CommandLine("127.0.0.1:1", tmp_path)(*arguments)
    assert finished.code == 3
    assert finished.out == ""
    assert "No gateway answers at 127.0.0.1:1" in finished.err
    assert "Traceback" not in finished.err


async def test_cancelled_run_can_be_retried(stand: GatewayStand, proctor: CommandLine) -> None:
    run_id = (await proctor(*ORDER, "--detach", "--json")).document["run"]["run_id"]
    assert (await proctor("cancel", run_id, "--json")).document["run"]["state"] == "cancelled"
    assert (await proctor("cancel", run_id)).code == 2
    assert "pending again" in (await proctor("retry", run_id)).out
    assert stand.scheduler.runs[run_id].epoch == 1


async def test_lists_are_tables_for_people_and_documents_for_scripts(proctor: CommandLine) -> None:
    suites = await proctor("suites")
    assert "cannot be run: mine/task.yaml: doc_to_text is missing" in suites.out
    documents = {
        word: (await proctor(word, "--json")).document for word in ("suites", "models", "runs", "status")
    }
    assert [suite["suite"] for suite in documents["suites"]["suites"]] == ["mine", "starter"]
    assert documents["models"]["models"][0]["model"] == "vllm/starter"
    assert documents["runs"] == {"runs": [], "next_page_token": "next", "total": 0}
    assert documents["status"]["workers"][0]["worker_id"] == "w1"


async def test_results_show_a_run_before_it_was_planned(proctor: CommandLine) -> None:
    run_id = (await proctor(*ORDER, "--detach", "--json")).document["run"]["run_id"]
    finished = await proctor("results", run_id, "--outcomes")
    assert finished.code == 0
    assert "pending" in finished.out


async def test_help_tells_the_exit_codes(proctor: CommandLine) -> None:
    for arguments in (("--help",), ("run", "--help")):
        assert "130 interrupted" in (await proctor(*arguments)).out
