"""The user who changed something is stored with the change and listed, also when its object is gone."""

from collections.abc import AsyncIterator

import asyncpg
import grpc
import pytest
import pytest_asyncio

from proctor.v1 import change_service_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.user import Caller
from services.common.clock import SystemClock
from services.common.grpc.caller import caller_metadata
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.audit.delete_old_records import DeleteOldRecords
from services.scheduler.audit.postgres import PostgresAudit
from services.scheduler.postgres import QUERIES, SCHEMA
from tests.fakes.callers import OPERATOR_METADATA
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness, created, lines

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNER = caller_metadata(Caller("ann"))
OTHER = caller_metadata(Caller("bob"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler")) as opened:
        yield opened


async def changes(harness: BatchHarness, object_id: str = "", size: int = 100) -> list[tuple[str, ...]]:
    """All pages."""
    found: list[tuple[str, ...]] = []
    token = ""
    while True:
        request = change_service_pb2.ListChangesRequest(page_size=size, page_token=token, object_id=object_id)
        page = await harness.changes.ListChanges(request)
        found += [(each.user, each.action, each.kind, each.object_id) for each in page.changes]
        token = page.next_page_token
        if not token:
            return found


async def test_run_shows_who_paused_resumed_and_cancelled_it(harness: BatchHarness) -> None:
    run_id = (await created(harness)).run_id
    await harness.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id), metadata=OWNER)
    await harness.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id), metadata=OPERATOR_METADATA)
    await harness.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id), metadata=OWNER)
    run = (await harness.runs.GetRun(scheduler_pb2.GetRunRequest(run_id=run_id))).run
    shown = [(each.user, each.action) for each in run.changes]
    assert shown == [("ann", "cancel"), ("operator", "resume"), ("ann", "pause")]
    assert all(each.changed_at.seconds for each in run.changes)
    assert await changes(harness, run_id, size=1) == [(*each, "run", run_id) for each in shown]


async def test_deleted_file_leaves_the_name_of_who_deleted_it(harness: BatchHarness) -> None:
    file = await harness.upload(lines(1), name="mine.jsonl")
    request = file_pb2.DeleteFileRequest(file_id=file.file_id)
    await harness.files.DeleteFile(request, metadata=OWNER)
    listed = change_service_pb2.ListChangesRequest(object_id=file.file_id)
    [change] = (await harness.changes.ListChanges(listed)).changes
    assert (change.user, change.action, change.kind, change.detail) == ("ann", "delete", "file", "mine.jsonl")


async def test_labels_are_kept_and_listed_as_a_change(harness: BatchHarness) -> None:
    run_id = (await created(harness)).run_id
    tags = scheduler_pb2.RunTags(tags=["ci"])
    change = scheduler_pb2.LabelRunRequest(run_id=run_id, name="nightly", note="x\ny", tags=tags)
    for _ in range(2):
        labelled = await harness.runs.LabelRun(change, metadata=OWNER)
        assert (labelled.run.labels.name, labelled.run.labels.note) == ("nightly", "x\ny")
    listed = await harness.runs.ListRuns(scheduler_pb2.ListRunsRequest(name="NIGHT", tag="ci"))
    assert [(run.run_id, run.labels.name, [*run.labels.tags], run.labels.note) for run in listed.runs] == [
        (run_id, "nightly", ["ci"], "x\ny")
    ]
    [made] = (
        await harness.changes.ListChanges(change_service_pb2.ListChangesRequest(object_id=run_id))
    ).changes
    assert (made.user, made.action, made.detail) == ("ann", "label", "name: nightly; tags: ci; note: x y")
    with pytest.raises(grpc.aio.AioRpcError, match="belongs to ann"):
        await harness.runs.LabelRun(change, metadata=OTHER)


async def test_what_is_refused_is_no_change(harness: BatchHarness) -> None:
    run_id = (await created(harness)).run_id
    with pytest.raises(grpc.aio.AioRpcError, match="belongs to ann"):
        await harness.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id), metadata=OTHER)
    with pytest.raises(grpc.aio.AioRpcError, match="only a paused run"):
        await harness.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id), metadata=OWNER)
    assert await changes(harness, run_id) == []


@pytest.mark.parametrize("token", ["x", "17", "-1", "9" * 30, "1 2", "٣"])
async def test_hand_made_page_token_is_refused(harness: BatchHarness, token: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await harness.changes.ListChanges(change_service_pb2.ListChangesRequest(page_token=token))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_old_records_and_those_that_are_too_many_are_deleted(harness: BatchHarness) -> None:
    async with await connect_pool(harness.postgres, schema=SCHEMA) as pool:
        stored = PostgresAudit(PostgresSession(pool, QUERIES))

        async def delete(days: float, limit: int = 100) -> None:
            await DeleteOldRecords(stored, SystemClock(), days, limit).delete()

        await delete(days=1e-9)
        assert await pool.fetchval("SELECT count(*) FROM audit_records") == 0
        await pool.execute(
            """
            INSERT INTO audit_records (recorded_at, username, action, kind, object_id, outcome, is_listed)
            SELECT now() - make_interval(days => 10 - number), 'ann', 'delete', 'file', number::text,
                CASE WHEN number > 30 THEN 'admitted' WHEN number > 10 THEN 'refused' ELSE 'done' END, true
            FROM generate_series(1, 40) AS number
            """
        )

        async def kept_after(days: float, limit: int) -> list[int]:
            await delete(days, limit)
            return [int(one[3]) for one in await changes(harness)]

        assert await kept_after(days=100, limit=100) == list(range(40, 0, -1))
        assert await kept_after(days=6.5, limit=100) == list(range(40, 3, -1))
        # Each outcome is counted by itself: many reads or refusals push out no change.
        assert await kept_after(days=100, limit=5) == [
            *range(40, 35, -1),
            *range(30, 25, -1),
            *range(10, 5, -1),
        ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_records SET username = 'eve'",
        "DELETE FROM audit_records",
        "TRUNCATE audit_records",
    ],
)
async def test_records_are_neither_changed_nor_deleted(harness: BatchHarness, statement: str) -> None:
    await created(harness)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="kept as they are"):
        await harness.execute(statement)
