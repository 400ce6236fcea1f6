"""`proctor run --dataset …` and what comes after it as a script sees it, against a real gateway."""

import asyncio
from pathlib import Path

from proctor.cli.program import with_program_name
from proctor.v1 import run_pb2, summary_pb2
from services.common.errors import ErrorKind
from tests.fakes.eventually import eventually
from tests.fakes.gateway.dataset_runs import recorded, stored_run
from tests.fakes.gateway.dataset_service import FakeDatasets
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused
from tests.fakes.stack.command_line import CommandLine, ended
from tests.fakes.stack.forked_commands import Finished

ID = "ds_" + 32 * "0"


def order(named: object, *more: str) -> tuple[str, ...]:
    return ("run", "--dataset", str(named), "--model", "vllm/starter", *more)


async def followed(harness: GatewayHarness, process: asyncio.subprocess.Process) -> Finished:
    """Once what it has ordered has gone well."""
    await eventually(lambda: harness.scheduler.watches_open > 0, "a run was ordered and is watched")
    run = list(harness.scheduler.runs.values())[-1]
    task = summary_pb2.TaskSummary(task="rows", answered=2)
    if run.order.metrics:
        task.metrics.add(metric="exact_match", mean=0.5, n=2)
    harness.results.summaries[run.run_id] = summary_pb2.RunSummary(tasks=[task], answered=2, total=2)
    run.state = run_pb2.RUN_STATE_COMPLETED
    harness.scheduler.put(run)
    return await ended(process)


async def test_file_is_uploaded_run_and_found_again_the_next_time(
    harness: GatewayHarness, datasets: FakeDatasets, proctor: CommandLine, rows: Path
) -> None:
    first = await followed(harness, await proctor.start(*order(rows, "--metric", "exact_match")))
    assert (first.code, first.err) == (0, "")
    assert f"rows.jsonl is the data set {ID}: 2 rows." in first.out
    assert "0.5000" in first.out
    assert "Answers: 2 of 2 to rows.jsonl" in first.out
    assert "--format jsonl -o answers.jsonl" in first.out
    [submitted] = harness.scheduler.submitted
    assert (submitted.order.dataset_id, submitted.order.suite) == (ID, "")
    assert datasets.content == rows.read_bytes()

    second = await followed(harness, await proctor.start(*order(rows)))
    assert "kept and not scored" in second.out
    other = rows.with_name("other.jsonl")
    other.write_bytes(rows.read_bytes())
    await followed(harness, await proctor.start(*order(other)))
    rows.write_text('{"prompt": "c"}\n')
    await followed(harness, await proctor.start(*order(rows)))
    keys = [header.request_id for header in datasets.headers]
    assert (keys[0] == keys[1], len(set(keys))) == (True, 3)


async def test_content_that_was_changed_under_its_key_is_uploaded_anew(
    harness: GatewayHarness, datasets: FakeDatasets, proctor: CommandLine, rows: Path
) -> None:
    datasets.digest = "that of another file"
    assert (await proctor(*order(rows, "--detach"))).code == 0
    first, second = datasets.headers
    assert first.request_id != second.request_id
    assert harness.scheduler.submitted[0].order.dataset_id == list(datasets.kept)[-1]


async def test_id_is_run_as_it_is(
    harness: GatewayHarness, datasets: FakeDatasets, proctor: CommandLine
) -> None:
    reported = await proctor(
        *order(ID, "--line-model", "gpt-4o", "--completion-window", "24h", "--detach", "--json")
    )
    assert reported.document["run"]["order"]["dataset_id"] == ID
    [submitted] = harness.scheduler.submitted
    assert list(submitted.order.line_models) == ["gpt-4o"]
    assert submitted.order.completion_window_seconds == 86_400
    assert not datasets.headers


async def test_what_cannot_be_run_is_said_in_a_sentence_and_orders_nothing(
    harness: GatewayHarness, datasets: FakeDatasets, proctor: CommandLine, rows: Path
) -> None:
    missing = await proctor(*order("rowz.jsonl"))
    sentence = "rowz.jsonl is neither a file nor the id of a data set (see `proctor datasets`)."
    assert (missing.code, missing.err) == (2, f"{with_program_name(sentence)}\n")
    contradiction = await proctor(*order(rows, "--task", "rte"))
    assert (contradiction.code, contradiction.err[:21]) == (2, "--task is for suites ")
    assert not datasets.headers
    rows.write_text("broken\n")
    faulty = await proctor(*order(rows))
    assert (faulty.code, faulty.out) == (2, "")
    assert faulty.err.startswith("rows.jsonl is refused and nothing of it is stored: 1 fault.")
    assert (await proctor(*order(rows, "--json"))).document["fault_count"] == 1
    assert not harness.scheduler.submitted
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "NO_TARGETS", "2 rows have no target.")
    untargeted = await proctor(*order(ID, "--metric", "exact_match"))
    assert (untargeted.code, untargeted.err) == (2, "2 rows have no target.\n")


async def test_run_is_listed_by_the_name_of_its_data_set_and_answers_by_their_rows(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    assert (await proctor("runs")).out == "There is no run yet.\n"
    assert (await proctor("runs", "--model", "p/none")).out == "There is no such run.\n"
    run = stored_run(harness)
    harness.results.outcomes[run.run_id] = [recorded(0), recorded(1)]
    assert "rows.jsonl" in (await proctor("runs")).out
    await proctor("runs", "--dataset", ID)
    assert harness.scheduler.listed[-1].dataset_id == ID
    shown = await proctor("results", run.run_id, "--outcomes")
    for part in ("row", "request-0", "request-1", "answer 1"):
        assert part in shown.out


async def test_closed_run_is_deleted(harness: GatewayHarness, proctor: CommandLine) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    refusal = await proctor("runs", "delete", run.run_id)
    assert (refusal.code, refusal.err) == (2, f"Run {run.run_id} is running.\n")
    run.state = run_pb2.RUN_STATE_COMPLETED
    gone = await proctor("runs", "delete", run.run_id)
    assert (gone.code, gone.out) == (0, f"Run {run.run_id} is deleted, with its answers.\n")
    assert (await proctor("runs", "delete", run.run_id)).code == 4


async def test_data_set_that_are_unknown_is_code_4_where_its_runs_are_looked_for(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    for arguments in (("runs", "--dataset", "ds_x"), ("leaderboard", "ds_x"), ("history", "--suite", "ds_x")):
        finished = await proctor(*arguments)
        assert (finished.code, finished.err) == (4, "There is no data set ds_x.\n")
    assert not harness.scheduler.runs
