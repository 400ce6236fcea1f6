"""Batches through a scheduler on real Postgres: one run each, and files that are written once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import (
    OUTPUT,
    BatchHarness,
    batch_harness,
    counts_json,
    created,
    end_run,
    lines,
    recorded,
    refused,
    state_word,
)
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


async def run_of(harness: BatchHarness, run_id: str) -> run_pb2.Run:
    return (await harness.runs.GetRun(scheduler_pb2.GetRunRequest(run_id=run_id))).run


# Making batches


async def test_batch_is_a_run_over_its_file(harness: BatchHarness) -> None:
    file = await harness.upload(lines(3))
    batch = await harness.create(file.file_id, metadata={"job": "nightly"}, completion_window="90m")
    assert (state_word(batch.state), batch.total, batch.answered, batch.failed) == ("validating", 3, 0, 0)
    assert (batch.input_file_id, batch.endpoint) == (file.file_id, "/v1/chat/completions")
    assert (dict(batch.metadata), batch.completion_window) == ({"job": "nightly"}, "90m")
    assert (batch.model, batch.user, list(batch.errors)) == ("openai/m", "ann", [])
    assert batch.expires_at.ToDatetime() - batch.created_at.ToDatetime() == timedelta(minutes=90)
    assert UUID(batch.run_id).hex == batch.batch_id.removeprefix("batch_")
    run = await run_of(harness, batch.run_id)
    assert (run.order.dataset_id, list(run.order.line_models)) == (file.file_id, ["m"])
    assert (run.order.priority, run.user) == (run_pb2.PRIORITY_NORMAL, "ann")
    assert run.order.completion_window_seconds == 5400
    assert (await harness.get(batch.batch_id)).batch_id == batch.batch_id


async def test_lines_may_call_the_model_by_an_alias(harness: BatchHarness) -> None:
    file = await harness.upload(lines(1, "alias", model="house"))
    batch = await harness.create(file.file_id)
    assert (batch.model, list(batch.errors)) == ("openai/m", [])


async def test_repeated_call_finds_the_batch_of_the_first(harness: BatchHarness) -> None:
    file, request_id = await harness.upload(lines(2, "again")), str(uuid4())
    made = await asyncio.gather(*(harness.create(file.file_id, request_id=request_id) for _ in range(5)))
    assert len({batch.batch_id for batch in made}) == 1
    runs = "SELECT count(*) FROM runs WHERE dataset_id = $1"
    assert await harness.count(runs, file.file_id) == 1
    async with refused() as reported:
        await harness.create(file.file_id, request_id=request_id, completion_window="2h")
    assert (reported[0].reason, reported[0].facts["batch_id"]) == ("REQUEST_ID_TAKEN", made[0].batch_id)
    assert request_id not in reported[0].message
    of_another = await harness.create(file.file_id, request_id=request_id, user="bob")
    assert of_another.batch_id != made[0].batch_id


async def test_batch_over_a_faulty_file_has_failed_and_names_the_lines(harness: BatchHarness) -> None:
    file = await harness.upload(lines(1, "dup") + b"{\n" + lines(1, "dup"))
    batch = await harness.create(file.file_id, request_id=str(uuid4()))
    assert (state_word(batch.state), batch.run_id, batch.total) == ("failed", "", 0)
    assert batch.failed_at == batch.created_at
    reported = [(error.code, error.param, error.line) for error in batch.errors]
    assert reported == [("invalid_json_line", "", 2), ("duplicate_custom_id", "custom_id", 3)]
    async with refused() as error:
        await harness.cancel(batch.batch_id)
    assert (error[0].reason, error[0].facts["state"]) == ("BATCH_ALREADY_FINISHED", "failed")
    await harness.delete(file.file_id)
    assert await harness.get(batch.batch_id) == batch


@pytest.mark.parametrize(
    ("content", "changes", "code", "param"),
    [
        (lines(1), {"endpoint": "/v1/completions"}, "url_mismatch", "url"),
        (lines(1, model="nobody/x"), {}, "", ""),
        (
            jsonl([batch_line(body={"messages": [{"role": "user", "content": "x"}]})]),
            {},
            "missing_required_parameter",
            "body.model",
        ),
    ],
)
async def test_batch_that_cannot_be_served_has_failed(
    harness: BatchHarness, content: bytes, changes: dict[str, str], code: str, param: str
) -> None:
    batch = await harness.create((await harness.upload(content)).file_id, **changes)
    if not code:
        # The only pool serves any model of its provider.
        assert (batch.model, list(batch.errors)) == ("openai/nobody/x", [])
        return
    assert state_word(batch.state) == "failed"
    assert [(error.code, error.param) for error in batch.errors] == [(code, param)]


@first_cases(
    3,
    ("changes", "field"),
    [
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"completion_window": "59m"}, "completion_window"),
        ({"completion_window": ""}, "completion_window"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        ({"metadata": {"k" * 65: "x"}}, "metadata"),
        ({"metadata": {"k": "x" * 513}}, "metadata"),
        ({"metadata": {"k": "a\0b"}}, "metadata"),
        ({"user": "a\nb"}, "user"),
        ({"request_id": "mine"}, "request_id"),
    ],
)
async def test_order_is_checked(harness: BatchHarness, changes: dict[str, Any], field: str) -> None:
    file = await harness.upload(lines(1))
    async with refused() as reported:
        await harness.create(file.file_id, **changes)
    assert (reported[0].reason, reported[0].facts["field"]) == ("INVALID_PARAMETER", field)


async def test_file_that_is_not_there_or_of_another_purpose_is_reported(harness: BatchHarness) -> None:
    async with refused() as reported:
        await harness.create(f"file-{uuid4().hex}")
    assert reported[0].reason == "FILE_NOT_FOUND"
    batch = await created(harness)
    recorded(harness, batch)
    await end_run(harness, batch)
    written = (await harness.reaches(batch.batch_id, "completed")).output_file_id
    async with refused() as reported:
        await harness.create(written)
    assert (reported[0].reason, reported[0].facts["field"]) == ("INVALID_PARAMETER", "input_file_id")


async def test_full_queue_is_passed_on_and_nothing_is_left(harness: BatchHarness) -> None:
    file = await harness.upload(lines(1, "full"))
    await harness.execute("UPDATE limits SET max_pending_runs_per_user = 1, max_running_runs = 1")
    try:
        await harness.create(file.file_id, user="eve")
        paused = "UPDATE runs SET state = 'paused' WHERE username = 'eve'"
        await harness.execute(paused)
        async with refused() as reported:
            await harness.create(file.file_id, user="eve")
    finally:
        await harness.execute("UPDATE limits SET max_pending_runs_per_user = NULL, max_running_runs = NULL")
    assert reported[0].reason == "QUEUE_FULL"
    assert await harness.count("SELECT count(*) FROM batches WHERE username = 'eve'") == 1
    assert await harness.count("SELECT count(*) FROM runs WHERE username = 'eve'") == 1


async def test_crash_between_run_and_batch_leaves_neither(harness: BatchHarness) -> None:
    """Postgres refuses the batch after its run was stored in the same transaction."""
    file, request_id = await harness.upload(lines(1, "crash")), str(uuid4())
    await harness.execute("ALTER TABLE batches ADD CONSTRAINT crash CHECK (username <> 'zoe')")
    try:
        async with refused():
            await harness.create(file.file_id, user="zoe", request_id=request_id)
    finally:
        await harness.execute("ALTER TABLE batches DROP CONSTRAINT crash")
    assert await harness.count("SELECT count(*) FROM runs WHERE username = 'zoe'") == 0
    batch = await harness.create(file.file_id, user="zoe", request_id=request_id)
    assert await harness.count("SELECT count(*) FROM runs WHERE username = 'zoe'") == 1
    assert (await harness.create(file.file_id, user="zoe", request_id=request_id)).batch_id == batch.batch_id


async def test_pages_go_from_the_newest_to_the_oldest(harness: BatchHarness) -> None:
    made = [(await created(harness)).batch_id for _ in range(5)][::-1]
    shown, after = [], ""
    while True:
        request = batch_pb2.ListBatchesRequest(page_size=2, after_batch_id=after)
        page = await harness.batches.ListBatches(request)
        shown += [batch.batch_id for batch in page.batches]
        if not page.has_more:
            break
        after = shown[-1]
    assert shown[:5] == made
    assert len(set(shown)) == len(shown)
    async with refused() as reported:
        await harness.batches.ListBatches(batch_pb2.ListBatchesRequest(after_batch_id=f"batch_{uuid4().hex}"))
    assert reported[0].reason == "BATCH_NOT_FOUND"


# Cancelling, retrying, deleting


@pytest.mark.parametrize("is_planned", [False, True])
async def test_cancelled_batch_keeps_what_was_answered(harness: BatchHarness, *, is_planned: bool) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    if is_planned:
        await harness.change_run(batch.run_id, planned_epoch=1, total=3)
        await harness.reaches(batch.batch_id, "in_progress")
    cancelling = await harness.cancel(batch.batch_id)
    assert (state_word(cancelling.state), cancelling.HasField("cancelling_at")) == ("cancelling", True)
    assert (await harness.cancel(batch.batch_id)).cancelling_at == cancelling.cancelling_at
    await harness.change_run(batch.run_id, is_closed=True, final_counts=counts_json(2, 0))
    ended = await harness.reaches(batch.batch_id, "cancelled")
    assert (ended.cancelling_at, ended.HasField("cancelled_at")) == (cancelling.cancelling_at, True)
    assert (ended.answered, ended.failed) == (2, 1)
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)
    async with refused() as reported:
        await harness.cancel(batch.batch_id)
    assert (reported[0].reason, reported[0].facts["state"]) == ("BATCH_ALREADY_FINISHED", "cancelled")


async def test_batch_that_is_finalizing_or_completed_cannot_be_cancelled(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    harness.results.gate.clear()
    await end_run(harness, batch)
    for state in ("finalizing", "completed"):
        await harness.reaches(batch.batch_id, state)
        async with refused() as reported:
            await harness.cancel(batch.batch_id)
        assert (reported[0].reason, reported[0].facts["state"]) == ("BATCH_ALREADY_FINISHED", state)
        harness.results.gate.set()


async def test_run_of_a_batch_is_not_retried(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    late = {"error_reason": "DEADLINE_REACHED", "error_message": "Too late."}
    await end_run(harness, batch, "failed", **late)
    await harness.reaches(batch.batch_id, "expired")
    async with refused() as reported:
        await harness.runs.RetryRun(
            scheduler_pb2.RetryRunRequest(run_id=batch.run_id), metadata=OPERATOR_METADATA
        )
    assert reported[0].reason == "RUN_NOT_RETRYABLE"
    assert reported[0].message.endswith("Make a new batch.")


async def test_batch_goes_with_its_run_and_its_files_stay(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    await end_run(harness, batch)
    ended = await harness.reaches(batch.batch_id, "completed")
    await harness.runs.DeleteRun(
        scheduler_pb2.DeleteRunRequest(run_id=batch.run_id), metadata=OPERATOR_METADATA
    )
    async with refused() as reported:
        await harness.get(batch.batch_id)
    assert reported[0].reason == "BATCH_NOT_FOUND"
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)


@pytest.mark.parametrize("batch_id", ["", "batch_1", "file-" + "0" * 32, "batch_" + "0" * 32, "batch_\0"])
async def test_what_is_no_batch_is_not_found(harness: BatchHarness, batch_id: str) -> None:
    async with refused() as reported:
        await harness.get(batch_id)
    assert reported[0].reason == "BATCH_NOT_FOUND"
