"""The command line as a script sees it: exit codes, JSON on stdout, Ctrl-C; against a real gateway."""

import signal
from importlib.metadata import version
from pathlib import Path

import pytest

from proctor.stack.state import StackLock, StackState, write_stack_state
from proctor.v1 import run_pb2, summary_pb2
from services.common.errors import ErrorKind
from services.common.process import release
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeScheduler, refused
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.stack.command_line import CommandLine, ended
from tests.fakes.thorough_cases import first_cases

NATS = "nats://operator:secret@127.0.0.1:4222"
ORDER = ("run", "--suite", "glue", "--model", "vllm/starter", "--limit", "4")


async def submitted_run(scheduler: FakeScheduler) -> run_pb2.Run:
    """The run that a command has ordered and watches."""
    await eventually(lambda: scheduler.watches_open > 0, "a run was ordered and is watched")
    return next(iter(scheduler.runs.values()))


def finish(harness: GatewayHarness, run: run_pb2.Run, state: run_pb2.RunState.ValueType) -> None:
    figure = summary_pb2.MetricFigure(metric="acc", mean=0.5, ci_low=0.2, ci_high=0.8, n=4)
    task = summary_pb2.TaskSummary(task="sst2", answered=4, metrics=[figure])
    harness.results.summaries[run.run_id] = summary_pb2.RunSummary(run_id=run.run_id, tasks=[task], total=4)
    run.progress.total = run.progress.recorded = 4
    run.state = state
    harness.scheduler.put(run)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (run_pb2.RUN_STATE_COMPLETED, 0),
        (run_pb2.RUN_STATE_FAILED, 1),
        (run_pb2.RUN_STATE_CANCELLED, 5),
    ],
)
async def test_run_ends_with_the_code_of_its_state(
    harness: GatewayHarness, proctor: CommandLine, state: run_pb2.RunState.ValueType, code: int
) -> None:
    process = await proctor.start(*ORDER)
    finish(harness, await submitted_run(harness.scheduler), state)
    finished = await ended(process)
    assert finished.code == code
    assert "0.5000 ± 0.3000" in finished.out
    assert finished.err == ""


async def test_json_is_one_document_on_stdout_and_progress_goes_to_stderr(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    process = await proctor.start(*ORDER, "--json")
    run = await submitted_run(harness.scheduler)
    finish(harness, run, run_pb2.RUN_STATE_COMPLETED)
    finished = await ended(process)
    assert finished.document["run"]["run_id"] == run.run_id
    assert finished.document["run"]["progress"]["completed"] == 4
    assert finished.document["summary"]["tasks"][0]["metrics"][0]["mean"] == 0.5
    assert "was accepted" in finished.err


async def test_detached_run_goes_on(harness: GatewayHarness, proctor: CommandLine) -> None:
    finished = await proctor(*ORDER, "--detach", "--json")
    assert finished.code == 0
    assert finished.document["run"]["state"] == "pending"
    assert harness.scheduler.submitted[0].order.limit == 4


async def test_several_models_are_a_run_each_and_are_compared(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    scheduler = harness.scheduler
    process = await proctor.start(*ORDER, "--also", "openai/a", "--tag", "nightly", "--json")
    await eventually(lambda: len(scheduler.runs) == 2, "both runs were ordered")
    for run in list(scheduler.runs.values()):
        finish(harness, run, run_pb2.RUN_STATE_COMPLETED)
    finished = await ended(process)
    assert finished.code == 0, finished.err
    assert [each["run"]["order"]["model"] for each in finished.document["runs"]] == [
        "vllm/starter",
        "openai/a",
    ]
    assert "comparison" in finished.document
    [tags] = {tuple(each.labels.tags) for each in scheduler.submitted}
    assert (len(tags), tags[0], tags[1].startswith("order-")) == (2, "nightly", True)


async def test_ctrl_c_leaves_all_runs_of_an_order_of_several_models(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    process = await proctor.start(*ORDER, "--also", "openai/a")
    await eventually(lambda: len(harness.scheduler.runs) == 2, "both runs were ordered")
    process.send_signal(signal.SIGINT)
    finished = await ended(process)
    assert (finished.code, "The runs go on." in finished.out) == (130, True)
    assert {run.state for run in harness.scheduler.runs.values()} == {run_pb2.RUN_STATE_PENDING}


async def test_a_model_that_is_named_twice_starts_nothing(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    finished = await proctor(*ORDER, "--also", "vllm/starter")
    assert (finished.code, finished.err) == (2, "A model is named twice: name each once.\n")
    assert harness.scheduler.submitted == []


async def test_ctrl_c_without_a_terminal_detaches(harness: GatewayHarness, proctor: CommandLine) -> None:
    process = await proctor.start(*ORDER)
    run = await submitted_run(harness.scheduler)
    process.send_signal(signal.SIGINT)
    finished = await ended(process)
    assert finished.code == 130
    assert f"The run {run.run_id} goes on." in finished.out
    assert harness.scheduler.runs[run.run_id].state == run_pb2.RUN_STATE_PENDING


async def test_run_that_failed_before_planning_says_why(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    process = await proctor.start(*ORDER)
    run = await submitted_run(harness.scheduler)
    run.state, run.error.message = run_pb2.RUN_STATE_FAILED, "Failed to load GLUE dataset: no rows."
    harness.scheduler.put(run)
    finished = await ended(process)
    assert finished.code == 1
    assert "failed: Failed to load GLUE dataset: no rows." in finished.out


async def test_order_of_what_does_not_exist_is_one_sentence_and_code_4(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_SUITE", "There is no suite glu.")
    finished = await proctor(*ORDER)
    assert (finished.code, finished.out, finished.err) == (4, "", "There is no suite glu.\n")
    finished = await proctor(*ORDER, "--json")
    assert finished.document == {"error": {"reason": "UNKNOWN_SUITE", "message": "There is no suite glu."}}


async def test_refused_order_is_code_2(harness: GatewayHarness, proctor: CommandLine) -> None:
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "INVALID_PARAMETER", "limit is 0.")
    assert (await proctor(*ORDER)).code == 2


@first_cases(2, "arguments", [("run",), ("nonsense",), ("runs", "--state", "lost"), (*ORDER, "--param", "x")])
async def test_wrong_usage_is_code_2(proctor: CommandLine, arguments: tuple[str, ...]) -> None:
    assert (await proctor(*arguments)).code == 2


@first_cases(
    1,
    ("arguments", "named"),
    [(("export", "r1", "--format", "json"), "--output"), (("runs", "--nonsense"), "--nonsense")],
)
async def test_wrong_usage_is_a_document_where_one_was_asked_for(
    proctor: CommandLine, arguments: tuple[str, ...], named: str
) -> None:
    finished = await proctor(*arguments, "--json")
    assert (finished.code, finished.document["error"]["reason"]) == (2, "INVALID_PARAMETER")
    assert named in finished.document["error"]["message"]
    assert (await proctor(*arguments)).out == ""


async def test_without_a_command_it_says_where_to_begin_and_then_how_to_go_on(tmp_path: Path) -> None:
    command_line = CommandLine("", tmp_path)
    begun = await command_line()
    assert begun.code == 0
    assert "proctor try --model openai/gpt-4o-mini" in begun.out
    lock = StackLock.take(tmp_path)
    try:
        write_stack_state(tmp_path, StackState(1, "running", "127.0.0.1:1", "127.0.0.1:2", "", NATS))
        going_on = await command_line()
    finally:
        lock.release()
    assert "A stack serves at http://127.0.0.1:1." in going_on.out
    assert "proctor open" in going_on.out
    assert "proctor try" not in going_on.out


@first_cases(1, "command", ["watch", "results", "cancel", "retry"])
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


async def test_cancelled_run_can_be_retried(harness: GatewayHarness, proctor: CommandLine) -> None:
    run_id = (await proctor(*ORDER, "--detach", "--json")).document["run"]["run_id"]
    assert (await proctor("cancel", run_id, "--json")).document["run"]["state"] == "cancelled"
    assert (await proctor("cancel", run_id)).code == 2
    assert "pending again" in (await proctor("retry", run_id)).out
    assert harness.scheduler.runs[run_id].epoch == 1


async def test_a_run_without_figures_is_closed_again(harness: GatewayHarness, proctor: CommandLine) -> None:
    run_id = (await proctor(*ORDER, "--detach", "--json")).document["run"]["run_id"]
    assert "is closed again (25%)" in (await proctor("reclose", run_id)).out
    harness.results.summaries[run_id] = summary_pb2.RunSummary(run_id=run_id)
    assert "has all its figures" in (await proctor("reclose", run_id)).out
    assert (await proctor("reclose", run_id, "--json")).document["summary"]["run_id"] == run_id


async def test_lists_are_tables_for_people_and_documents_for_scripts(proctor: CommandLine) -> None:
    suites = await proctor("suites")
    assert "cannot be run: mine/task.yaml: doc_to_text is missing" in suites.out
    documents = {
        word: (await proctor(word, "--json")).document for word in ("suites", "models", "runs", "status")
    }
    assert [suite["suite"] for suite in documents["suites"]["suites"]] == ["mine", "starter"]
    assert documents["models"]["models"][0]["model"] == "vllm/starter"
    assert [source["problem"] for source in documents["models"]["sources"]] == ["", "No answer within 2 s."]
    assert documents["runs"] == {"runs": [], "next_page_token": "next", "total": 0, "completed": 0}
    assert documents["status"]["workers"][0]["worker_id"] == "w1"


async def test_results_show_a_run_before_it_was_planned(proctor: CommandLine) -> None:
    run_id = (await proctor(*ORDER, "--detach", "--json")).document["run"]["run_id"]
    finished = await proctor("results", run_id, "--outcomes")
    assert finished.code == 0
    assert "pending" in finished.out


async def test_help_lists_the_exit_codes(proctor: CommandLine) -> None:
    for arguments in (("--help",), ("run", "--help")):
        # Wherever the terminal's width breaks the line.
        assert "130 interrupted" in " ".join((await proctor(*arguments)).out.split())


async def test_version_is_that_of_the_program_and_of_a_gateway_that_answers(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    own = f"proctor {version('proctor-eval')}"
    assert (await proctor("--version")).out == f"{own}; the gateway at {harness.grpc} is {release()}\n"
    assert (await CommandLine("127.0.0.1:1", tmp_path)("--version")).out == f"{own}\n"


async def test_shell_completion_is_offered(proctor: CommandLine) -> None:
    assert "--install-completion" in (await proctor("--help")).out


async def test_status_shows_the_local_stack_beside_a_gateway_that_is_named(
    harness: GatewayHarness, tmp_path: Path
) -> None:
    lock = StackLock.take(tmp_path / "state")
    stack = StackState(1, "running", "127.0.0.1:8080", "127.0.0.1:8081", "postgresql://a:secret@b/c", NATS)
    write_stack_state(tmp_path / "state", stack)
    shown = (await CommandLine(harness.grpc, tmp_path / "state")("status", "--json")).document
    lock.release()
    assert shown["stack"]["gateway_grpc"] == "127.0.0.1:8081"
    assert shown["stack"]["nats_url"] == "nats://127.0.0.1:4222"
    assert shown["workers"][0]["worker_id"] == "w1"


async def test_run_is_labelled_and_found_by_its_labels(harness: GatewayHarness, proctor: CommandLine) -> None:
    named = (*ORDER, "--name", "first", "--tag", "b", "--detach", "--json")
    run_id = (await proctor(*named)).document["run"]["run_id"]
    labelled = await proctor("runs", "label", run_id, "--name", "nightly", "--add-tag", "ci")
    assert (labelled.code, f"Run {run_id} has nightly #b #ci." in labelled.out) == (0, True)
    assert "nightly #b #ci" in (await proctor("runs", "--name", "night", "--tag", "ci")).out
    asked = harness.scheduler.listed[-1]
    assert (asked.name, asked.tag) == ("night", "ci")
    assert (await proctor("runs", "label", run_id)).code == 2
