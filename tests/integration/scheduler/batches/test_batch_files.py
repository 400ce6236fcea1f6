"""Files that batches write through a scheduler on real Postgres: whole, once, whatever fails meanwhile."""

import asyncio
import json
import os
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.clock import SystemClock
from services.common.grpc.client import open_channel
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.batches.finalize_batch import FinalizeBatch
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.stored_batch import BatchId
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.uploads.delete_uploads import CollectUnreferencedObjects
from services.scheduler.uploads.stored_file import FileId
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.batch_harness import (
    ERRORS,
    OUTPUT,
    BatchHarness,
    batch_harness,
    created,
    end_run,
    lines,
    recorded,
    refused,
    state_word,
)
from tests.fakes.scheduler.batch_results import RecordedRun
from tests.fakes.scheduler.upload_stores import datasets_in, files_in, storage_in
from tests.fakes.scheduler_rules import queue_limits
from tests.fakes.storage.s3_server import BUCKET, s3_server
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


# Ending them


async def test_files_stay_as_long_as_the_batch_says_from_when_they_are_written(harness: BatchHarness) -> None:
    batch = await created(harness, output_expires_after_seconds=3600)
    recorded(harness, batch)
    await end_run(harness, batch)
    ended = await harness.reaches(batch.batch_id, "completed")
    for file_id in (ended.output_file_id, ended.error_file_id):
        request = file_pb2.GetFileRequest(file_id=file_id)
        file = (await harness.files.GetFile(request)).file
        assert file.expires_at.ToDatetime() - file.created_at.ToDatetime() == timedelta(hours=1)
        assert file.created_at.ToDatetime() > batch.created_at.ToDatetime()
    for seconds in (3599, 2_592_001):
        async with refused() as reported:
            await created(harness, output_expires_after_seconds=seconds)
        assert reported[0].facts["field"] == "output_expires_after_seconds"


async def test_files_are_written_once_the_run_is_closed(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    harness.results.gate.clear()
    await end_run(harness, batch)
    going = await harness.reaches(batch.batch_id, "finalizing")
    assert (going.output_file_id, going.error_file_id) == ("", "")
    harness.results.gate.set()
    ended = await harness.reaches(batch.batch_id, "completed")
    assert (ended.total, ended.answered, ended.failed) == (3, 2, 1)
    assert (ended.usage.prompt_tokens, ended.usage.completion_tokens) == (2, 2)
    assert ended.finalizing_at.ToDatetime() <= ended.completed_at.ToDatetime()
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)
    assert await harness.read(ended.error_file_id) == b"".join(ERRORS)
    request = file_pb2.GetFileRequest(file_id=ended.output_file_id)
    file = (await harness.files.GetFile(request)).file
    assert (file.name, file.user) == (f"{batch.batch_id}_output.jsonl", "ann")
    assert (file.purpose, file.size_bytes) == (
        file_pb2.FILE_PURPOSE_BATCH_OUTPUT,
        sum(map(len, OUTPUT)),
    )
    for file_id in (ended.output_file_id, ended.error_file_id, ended.input_file_id):
        await harness.delete(file_id)
        assert [name for name in harness.objects_of(file_id) if name.startswith("files/")] == []


async def test_empty_file_is_none(harness: BatchHarness) -> None:
    batch = await created(harness)
    harness.results.runs[batch.run_id] = RecordedRun([*OUTPUT, *ERRORS], [])
    await end_run(harness, batch)
    ended = await harness.reaches(batch.batch_id, "completed")
    assert (bool(ended.output_file_id), ended.error_file_id) == (True, "")


@first_cases(
    3,
    ("state", "reason", "ends_as", "code"),
    [
        ("completed", None, "completed", "batch_failed"),
        ("failed", "TOO_MANY_FAILURES", "completed", "batch_failed"),
        ("failed", "DEADLINE_REACHED", "expired", "batch_expired"),
        ("failed", "MODEL_CANNOT_LOAD", "failed", "batch_failed"),
        ("cancelled", None, "cancelled", "batch_cancelled"),
    ],
)
async def test_end_of_a_run_is_that_of_its_batch(
    harness: BatchHarness, state: str, reason: str | None, ends_as: str, code: str
) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    await end_run(harness, batch, state, error_reason=reason, error_message=reason and "It is so.")
    ended = await harness.reaches(batch.batch_id, ends_as)
    assert f"{ends_as}_at" in {field.name for field, _ in ended.ListFields()}
    assert await harness.read(ended.error_file_id) == b"".join(ERRORS)
    codes = {one.missing_code for one in harness.results.asked if one.run_id == batch.run_id}
    assert codes == {"", code}
    reported = [(error.code, error.message) for error in ended.errors]
    assert reported == ([("model_cannot_load", "It is so.")] if ends_as == "failed" else [])


async def test_lines_of_a_run_that_was_never_planned_are_all_in_the_error_file(harness: BatchHarness) -> None:
    file = await harness.upload(lines(5, "unasked"))
    batch = await harness.create(file.file_id)
    late = {"error_reason": "DEADLINE_REACHED", "error_message": "Too late.", "final_counts": None}
    await end_run(harness, batch, "failed", planned_epoch=0, total=0, **late)
    ended = await harness.reaches(batch.batch_id, "expired")
    assert (ended.output_file_id, ended.total, ended.answered, ended.failed) == ("", 5, 0, 5)
    written = [json.loads(line) for line in (await harness.read(ended.error_file_id)).splitlines()]
    assert [line["custom_id"] for line in written] == [f"unasked-{number}" for number in range(5)]
    assert {line["error"]["code"] for line in written} == {"batch_expired"}
    assert len({line["id"] for line in written}) == 5
    assert written[0].keys() == {"id", "custom_id", "response", "error"}


async def test_lines_of_a_run_that_results_knows_no_more_are_all_in_the_error_file(
    harness: BatchHarness,
) -> None:
    batch = await created(harness)
    await end_run(harness, batch)
    ended = await harness.reaches(batch.batch_id, "completed")
    assert ended.output_file_id == ""
    reported = [json.loads(line) for line in (await harness.read(ended.error_file_id)).splitlines()]
    assert len({line["custom_id"] for line in reported}) == len(reported) == batch.total
    assert {line["error"]["code"] for line in reported} == {"batch_failed"}


async def test_answered_lines_of_a_run_without_figures_are_in_the_output_only(harness: BatchHarness) -> None:
    """As where results could not close it: the run has no counts, and every answer is there."""
    batch = await created(harness)
    harness.results.runs[batch.run_id] = RecordedRun([*OUTPUT, *ERRORS], [])
    await end_run(harness, batch, "failed", error_reason="RUN_UNCLOSABLE", final_counts=None)
    ended = await harness.reaches(batch.batch_id, "failed")
    assert await harness.read(ended.output_file_id) == b"".join([*OUTPUT, *ERRORS])
    assert ended.error_file_id == ""


async def test_files_that_lack_a_line_are_named_once_they_have_all(harness: BatchHarness) -> None:
    batch = await created(harness)
    run = recorded(harness, batch)
    run.output.pop()
    await end_run(harness, batch)
    await was_tried_twice(harness, batch)
    assert state_word((await harness.get(batch.batch_id)).state) == "finalizing"
    run.output[:] = OUTPUT
    ended = await harness.reaches(batch.batch_id, "completed")
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)


async def test_failing_results_or_store_are_tried_again_and_leave_nothing_else(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    harness.results.failures = 1
    before = harness.objects()
    await end_run(harness, batch)
    ended = await harness.reaches(batch.batch_id, "completed")
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)
    new = set(harness.objects()) - set(before)
    written = {ended.output_file_id, ended.error_file_id}
    assert {name.split("/")[1] for name in new} == written
    assert len([one for one in harness.results.asked if one.run_id == batch.run_id]) == 3


async def test_store_that_is_away_leaves_a_batch_finalizing_until_it_is_back(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    # A file in the place of a folder.
    (harness.folder / "files").rename(harness.folder / "away")
    (harness.folder / "files").write_bytes(b"")
    await end_run(harness, batch)
    await was_tried_twice(harness, batch)
    assert state_word((await harness.get(batch.batch_id)).state) == "finalizing"
    (harness.folder / "files").unlink()
    (harness.folder / "away").rename(harness.folder / "files")
    ended = await harness.reaches(batch.batch_id, "completed")
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)


async def test_store_without_room_leaves_a_batch_finalizing_until_there_is_some(
    harness: BatchHarness,
) -> None:
    batch = await created(harness)
    recorded(harness, batch).output = [os.urandom(1_000_000).hex().encode() + b"\n", b"{}\n"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    before = harness.objects()
    try:
        await end_run(harness, batch)
        await was_tried_twice(harness, batch)
        assert state_word((await harness.get(batch.batch_id)).state) == "finalizing"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    ended = await harness.reaches(batch.batch_id, "completed")
    assert len(await harness.read(ended.output_file_id)) == 2_000_004
    new = {name.split("/")[1] for name in set(harness.objects()) - set(before)}
    assert new == {ended.output_file_id, ended.error_file_id}


async def test_run_is_not_deleted_before_its_files_are_written(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    harness.results.gate.clear()
    await end_run(harness, batch)
    await harness.reaches(batch.batch_id, "finalizing")
    async with refused() as reported:
        await harness.runs.DeleteRun(
            scheduler_pb2.DeleteRunRequest(run_id=batch.run_id), metadata=OPERATOR_METADATA
        )
    assert reported[0].reason == "BATCH_FILES_UNWRITTEN"
    assert reported[0].facts == {"run_id": batch.run_id, "batch_id": batch.batch_id}
    harness.results.gate.set()
    await harness.reaches(batch.batch_id, "completed")
    await harness.runs.DeleteRun(
        scheduler_pb2.DeleteRunRequest(run_id=batch.run_id), metadata=OPERATOR_METADATA
    )


async def test_files_lie_in_a_bucket_as_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as bucket:
        for name, value in bucket_environment(bucket.endpoint).items():
            monkeypatch.setenv(name, value)
        async with batch_harness(tmp_path, object_store=f"s3://{BUCKET}/below") as harness:
            content = lines(3, "bucket")
            file = await harness.upload(content)
            assert await harness.read(file.file_id, 7) == content[7:]
            batch = await harness.create(file.file_id)
            recorded(harness, batch)
            await end_run(harness, batch)
            ended = await harness.reaches(batch.batch_id, "completed")
            assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)
            for file_id in (ended.output_file_id, ended.error_file_id, file.file_id):
                await harness.delete(file_id)
        assert bucket.contents == {}


def bucket_environment(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "us-east-1",
    }


async def was_tried_twice(harness: BatchHarness, batch: batch_pb2.Batch) -> None:
    def was_tried() -> bool:
        return len([one for one in harness.results.asked if one.run_id == batch.run_id]) >= 2

    await eventually(was_tried, "it was tried twice")


class Finalizing:
    """The end of batches by hand, as a second scheduler would try it."""

    def __init__(self, harness: BatchHarness, sessions: PostgresSession, channel: grpc.aio.Channel) -> None:
        runs = PostgresRuns(sessions, PostgresLimits(sessions, queue_limits()))
        self.store = PostgresBatches(sessions, runs, storage_in(sessions))
        self.objects = ObstoreObjects(harness.folder.as_uri())
        self.sessions = sessions
        files = files_in(sessions)
        self.use_case = FinalizeBatch(
            self.store, files, GrpcBatchLines(channel), self.objects, SystemClock(), 60.0
        )
        self.given: list[FileId] = []

    def new_file_id(self) -> FileId:
        self.given.append(FileId(f"file-{uuid4().hex}"))
        return self.given[-1]

    async def finalize(self, token: FencingToken, batch_id: str) -> bool:
        return await self.use_case.finalize(token, BatchId(batch_id), self.new_file_id)


@asynccontextmanager
async def finalizing(harness: BatchHarness, address: str) -> AsyncIterator[Finalizing]:
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool, open_channel(address) as channel:
        yield Finalizing(harness, PostgresSession(pool, QUERIES), channel)


async def fence_of(harness: BatchHarness) -> FencingToken:
    return FencingToken(await harness.count("SELECT fencing_token FROM leadership"))


async def test_leader_that_lost_its_term_names_no_files(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    harness.results.gate.clear()
    await end_run(harness, batch)
    async with finalizing(harness, harness.results_address) as other:
        late = asyncio.ensure_future(
            other.finalize(FencingToken(await fence_of(harness) - 1), batch.batch_id)
        )

        async def both_write() -> bool:
            return len([one for one in harness.results.asked if one.run_id == batch.run_id]) == 2

        await eventually(both_write, "both write")
        harness.results.gate.set()
        with pytest.raises(LeadershipLost):
            await late
        ended = await harness.reaches(batch.batch_id, "completed")
        assert ended.output_file_id not in other.given
        files = "SELECT count(*) FROM files WHERE name LIKE $1"
        assert await harness.count(files, f"{batch.batch_id}%") == 2
        # What it had stored is loose, and swept.
        clock = _LaterClock()
        collector = CollectUnreferencedObjects(
            datasets_in(other.sessions),
            other.objects,
            clock,
            60.0,
        )
        await collector.collect()
        assert [name for given in other.given for name in harness.objects_of(given)] == []
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)


async def test_files_are_named_once_in_whatever_order_they_come(harness: BatchHarness) -> None:
    batch = await created(harness)
    recorded(harness, batch)
    harness.results.gate.clear()
    await end_run(harness, batch)
    async with finalizing(harness, harness.results_address) as other:
        token = await fence_of(harness)
        second = asyncio.ensure_future(other.finalize(token, batch.batch_id))

        async def both_write() -> bool:
            return len([one for one in harness.results.asked if one.run_id == batch.run_id]) == 2

        await eventually(both_write, "both write")
        harness.results.gate.set()
        was_first = await second
        ended = await harness.reaches(batch.batch_id, "completed")
        assert (ended.output_file_id in other.given) == was_first
        assert await harness.count("SELECT count(*) FROM files WHERE name LIKE $1", f"{batch.batch_id}%") == 2
        assert await other.finalize(token, batch.batch_id) is False
    assert await harness.read(ended.output_file_id) == b"".join(OUTPUT)
    assert await harness.read(ended.error_file_id) == b"".join(ERRORS)


class _LaterClock(SystemClock):
    def now(self) -> datetime:
        return super().now() + timedelta(hours=2)
