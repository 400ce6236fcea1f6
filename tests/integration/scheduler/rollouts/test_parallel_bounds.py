"""Rollouts of a group in flight: bounded whoever leads, and whatever its drivers have forgotten."""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.rollout import BudgetUse
from proctor.values.run import RunId
from proctor.values.scoring import OutputType
from services.common.postgres import PostgresSession
from services.scheduler.dispatch.dispatch_shards import CreditRule, DispatchedRun, DispatchShards, PoolLoad
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.dispatch.shard_ledger import ShardLedger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.find_tasks import row_scoring
from services.scheduler.planning.ports import PlanRecord, PlanToOpen, ShardMoves, TaskToOpen
from services.scheduler.planning.shard import Shard
from services.scheduler.postgres import QUERIES
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.rollouts.budgets.budget_report import BudgetReport
from services.scheduler.rollouts.budgets.postgres import PostgresBudgets
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from tests.fakes.callers import by
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.scheduler_harness import ready_worker
from tests.fakes.scheduler.stores import Stores, add, admit, empty_stores, new_run, stores_in_memory
from tests.fakes.scheduler.surroundings import START, InMemoryRecord, InMemoryStream, ListedWorkers, SetClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARALLEL = 3
ROLLOUTS = 6
TASK = PlannedTask(
    task="mend",
    version="1",
    sample_set_id="set",
    sample_count=1,
    output_type=OutputType.GENERATE_UNTIL,
    is_of_rollouts=True,
    row_source="rows",
    row_source_revision="1",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(params=["memory", "postgres"], loop_scope="module")
async def stores(request: pytest.FixtureRequest, pool: asyncpg.Pool) -> Stores:
    return stores_in_memory() if request.param == "memory" else await empty_stores(pool)


@dataclass
class Leader:
    """One term, with all that a leader keeps in memory."""

    stores: Stores
    stream: InMemoryStream
    token: FencingToken

    def __post_init__(self) -> None:
        rule = CreditRule(min_shards=8, max_shards=8, seconds_ahead=1.0)
        registry = ListedWorkers([ready_worker()])
        self.dispatcher = DispatchShards(self.stores.shards, self.stream, ProgressTracker(), registry, rule)

    async def driven(self, run: Run) -> DispatchedRun:
        """What a driver reads when it begins, and after each reset."""
        tasks = await self.stores.runs.planned_tasks(run.run_id)
        dispatched_run = DispatchedRun(self.token, run, tasks, ShardLedger())
        await self.dispatcher.reload(dispatched_run)
        return dispatched_run

    async def dispatch(self, dispatched_run: DispatchedRun) -> None:
        await self.dispatcher.dispatch(dispatched_run, PoolLoad(1, math.inf), now=1.0)


async def planned_run(stores: Stores, token: FencingToken) -> Run:
    run = await add(stores, new_run(parallel_group="ann/1", parallel=PARALLEL, rollouts=ROLLOUTS))
    await admit(stores, token, limit=10)
    await stores.shards.add_shards(token, run, [Shard(each, 0, each, [0], 1) for each in range(ROLLOUTS)])
    await stores.shards.mark_planned(token, run, PlanRecord((TASK,), ROLLOUTS))
    return await stores.runs.get(run.run_id)


def sent(stream: InMemoryStream, *runs: Run) -> int:
    return sum(len(stream.sent.get(RunId(run.run_id), [])) for run in runs)


async def test_runs_of_a_group_that_dispatch_at_the_same_time_share_its_places(stores: Stores) -> None:
    stream = InMemoryStream()
    leader = Leader(stores, stream, await stores.begin_term())
    runs = [await planned_run(stores, leader.token) for _ in range(4)]
    await asyncio.gather(*[leader.dispatch(await leader.driven(run)) for run in runs])
    assert sent(stream, *runs) == PARALLEL


async def test_a_new_leader_counts_what_the_one_before_has_sent(stores: Stores) -> None:
    stream = InMemoryStream()
    first = Leader(stores, stream, await stores.begin_term())
    run, other = [await planned_run(stores, first.token) for _ in range(2)]
    await first.dispatch(await first.driven(run))
    assert sent(stream, run) == PARALLEL
    second = Leader(stores, stream, await stores.begin_term())
    await second.dispatch(await second.driven(other))
    assert sent(stream, run, other) == PARALLEL


async def test_a_driver_that_begins_anew_frees_no_place(stores: Stores) -> None:
    stream = InMemoryStream()
    leader = Leader(stores, stream, await stores.begin_term())
    run, other = [await planned_run(stores, leader.token) for _ in range(2)]
    driven, its_other = await leader.driven(run), await leader.driven(other)
    await leader.dispatch(driven)
    # After a failed step a driver drops its view, and reads it again a moment later.
    del driven
    await leader.dispatch(its_other)
    await leader.dispatch(await leader.driven(run))
    assert sent(stream, run, other) == PARALLEL


async def test_what_is_done_makes_room_for_the_others(stores: Stores) -> None:
    stream = InMemoryStream()
    leader = Leader(stores, stream, await stores.begin_term())
    run, other = [await planned_run(stores, leader.token) for _ in range(2)]
    driven, its_other = await leader.driven(run), await leader.driven(other)
    await leader.dispatch(driven)
    driven.ledger.remove_done([0, 1])
    # Places of its own are taken first, by the same statement or the next.
    await leader.dispatch(driven)
    assert (sent(stream, run), sent(stream, other)) == (PARALLEL + 2, 0)
    driven.ledger.remove_done([2, 3, 4])
    await leader.dispatch(driven)
    await leader.dispatch(its_other)
    assert (sent(stream, run), sent(stream, other)) == (ROLLOUTS, 2)


async def rollouts_of_group(
    stores: Stores, token: FencingToken, group: str, *, total: int = 4
) -> tuple[Run, list[Shard]]:
    """A running run with a shard for each of its rollouts, and these shards as they are dispatched."""
    run = await add(stores, new_run(parallel_group=group, parallel=3))
    await admit(stores, token, limit=10)
    shards = [Shard(number, 0, number, [0], 1) for number in range(total)]
    await stores.shards.add_shards(token, run, shards)
    return await stores.runs.get(run.run_id), [replace(shard, attempt=1) for shard in shards]


async def test_runs_of_a_group_never_dispatch_more_than_its_bound(stores: Stores) -> None:
    token = await stores.begin_term()
    group = [await rollouts_of_group(stores, token, "ann/1") for _ in range(4)]
    other, its_shards = await rollouts_of_group(stores, token, "ann/2")
    moves = [stores.shards.move(token, run, ShardMoves(dispatched=shards)) for run, shards in group]
    sent = await asyncio.gather(*moves)
    assert sorted(sent) == [0, 0, 0, 3]
    assert sum([len(await stores.shards.dispatched(run)) for run, _ in group]) == 3
    assert [await stores.shards.room(run) for run, _ in (*group, (other, its_shards))] == [0, 0, 0, 0, 3]
    # A statement whose commit was not answered is repeated: it sends the same.
    again = [await stores.shards.move(token, run, ShardMoves(dispatched=shards)) for run, shards in group]
    assert again == sent
    assert await stores.shards.move(token, other, ShardMoves(dispatched=its_shards)) == 3
    # One is done: another of the same statement takes its place, and no second one.
    run, shards = group.pop(sent.index(3))
    assert await stores.shards.move(token, run, ShardMoves(done=[0], dispatched=shards[3:])) == 1
    run, shards = group[0]
    assert await stores.shards.move(token, run, ShardMoves(dispatched=shards)) == 0


async def test_runs_that_do_not_run_hold_no_place_of_their_group(stores: Stores) -> None:
    token = await stores.begin_term()
    [(first, shards), (second, _)] = [await rollouts_of_group(stores, token, "ann/3") for _ in range(2)]
    assert await stores.shards.move(token, first, ShardMoves(dispatched=shards)) == 3
    assert await stores.shards.room(second) == 0
    await stores.runs.cancel(first.run_id, by(START))
    assert await stores.shards.room(second) == 3


async def test_missing_rollouts_are_sent_one_by_one_again(stores: Stores) -> None:
    """Also those whose shard counts as done: together they would take one place."""
    record, stream, clock = InMemoryRecord(), InMemoryStream(), SetClock()
    leader = Leader(stores, stream, await stores.begin_term())
    run = await planned_run(stores, leader.token)
    driven = await leader.driven(run)
    await stores.shards.delete_shards(leader.token, run)
    await leader.dispatch(driven)
    assert driven.ledger.is_drained
    reconciling = ReconcileShards(stores.shards, record, stream, ProgressTracker(), clock)
    task = replace(TASK, sample_count=2)
    await record.open_run(run, PlanToOpen([TaskToOpen(task, row_scoring(()))]))
    await reconciling.reconcile(replace(driven, tasks=[task]))
    again = await stores.shards.planned(run, -1, 100)
    assert [shard.size for shard in again] == [1] * (2 * ROLLOUTS)


async def test_what_rests_leaves_its_places_to_other_runs_of_its_group(pool: asyncpg.Pool) -> None:
    stores, stream = await empty_stores(pool), InMemoryStream()
    leader = Leader(stores, stream, await stores.begin_term())
    run, other = [await planned_run(stores, leader.token) for _ in range(2)]
    driven, its_other = await leader.driven(run), await leader.driven(other)
    await leader.dispatch(driven)
    session = PostgresSession(pool, QUERIES)
    budgets = PostgresBudgets(session, SetClock())
    report = BudgetReport(run.run_id, run.epoch, 0, 0, 0, uuid4().hex, BudgetUse(1), is_resting=True)
    assert await budgets.record(report) is not None
    # Its own run begins no other in the place of one that rests.
    await leader.dispatch(driven)
    await leader.dispatch(its_other)
    assert (sent(stream, run), sent(stream, other)) == (PARALLEL, 1)
    assert await budgets.record(replace(report, is_resting=False)) is not None
    assert await stores.shards.room(other) == 0
