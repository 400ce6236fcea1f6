"""A disk of Postgres that a table fills up: work waits by its kind, and goes on by itself."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.e2e.harness.entry_points import HttpAnswer, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, keyed_order, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024**2
# Some times as large as the databases of a new stack.
SIZE = 200 * MIB
ROWS = 400


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    environment = {**SHORT_TIMEOUTS, "PROCTOR_SCHEDULER_POSTGRES_DISK_BYTES": str(SIZE)}
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=ROWS, concurrency=4, environment=environment)
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


async def fill(stack: StackHarness, share: float) -> None:
    """Makes a table so large that so much of the disk is used; 0 drops it."""
    async with stack.database() as database:
        await database.execute("DROP TABLE IF EXISTS in_the_way")
        used = await database.fetchval("SELECT sum(pg_database_size(oid)) FROM pg_database")
        blocks = max(int(share * SIZE) - int(used), 0) // 8192
        await database.execute("CREATE UNLOGGED TABLE in_the_way (filler text STORAGE PLAIN)")
        # One row of a block each.
        statement = "INSERT INTO in_the_way SELECT repeat('x', 8000) FROM generate_series(1, $1)"
        await database.execute(statement, blocks)
        if not share:
            await database.execute("DROP TABLE in_the_way")


async def uploaded(stack: StackHarness, path: str = "upload") -> HttpAnswer:
    rows = aiohttp.FormData()
    rows.add_field("file", b'{"prompt": "x"}\n', filename="x.jsonl")
    return await http(stack, "POST", f"/admin/datasets/{path}", data=rows)


async def shown_reasons(stack: StackHarness) -> list[str]:
    return [disk["reason"] for disk in (await http(stack, "GET", "/api/v1/queue")).body["full_disks"]]


async def until_noticed(stack: StackHarness, words: str) -> None:
    async def is_noticed() -> bool:
        return any(words in reason for reason in await shown_reasons(stack))

    await eventually(is_noticed, words, 15)


async def test_uploads_then_runs_then_dispatch_wait_for_room_and_nothing_is_lost(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=1.0)
    running = await stack.submit()

    async def some_are_recorded() -> bool:
        return (await stack.client.run(running)).progress.recorded > 0

    await eventually(some_are_recorded, "the run has outcomes", 30)
    await fill(stack, 0.925)
    await until_noticed(stack, "; new runs wait")
    refused = await uploaded(stack)
    assert (refused.status, refused.body["reason"]) == (503, "DISK_FULL")
    assert refused.headers["Retry-After"] == "60"
    # A preview stores nothing.
    assert (await uploaded(stack, "upload/preview")).status == 200
    assert (await http(stack, "GET", "/admin/datasets")).body["datasets"] == []
    waiting = await stack.submit(keyed_order(limit=3))
    run = await stack.client.run(waiting)
    assert run.state == run_pb2.RUN_STATE_PENDING
    assert "the disk of Postgres is 92.5% full" in run.wait.blocked_by
    assert "Storage fills up" in (await proctor(stack, "queue")).out

    await fill(stack, 0.97)
    await until_noticed(stack, "; runs wait")

    async def step_says_so() -> bool:
        step = (await stack.client.run(running)).progress.phase
        return "waiting for room: the disk of Postgres is" in step

    await eventually(step_says_so, "the step of the run says why it waits", 15)
    await stack.model_server.control(latency_seconds=0)
    await fill(stack, 0)
    for run_id, total in ((running, ROWS), (waiting, 3)):
        assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_COMPLETED
        outcomes = await all_outcomes(stack, run_id)
        assert len(outcomes) == len({(each.task, each.doc_id) for each in outcomes}) == total
    assert await shown_reasons(stack) == []
    assert (await uploaded(stack)).status in (200, 201)
