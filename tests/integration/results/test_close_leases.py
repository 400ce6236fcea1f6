"""Replicas of results on one Postgres: one closes a run, others answer how far that is, or close it again."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime

import pytest
import pytest_asyncio

from proctor.values.run import RunState
from proctor.values.usage import TokenUsage
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.leaderboard.postgres import PostgresLeaderboard
from services.results.leases import hold_lease
from services.results.leases.lease import Lease, Work, WorkKind
from services.results.leases.postgres import PostgresLeases
from services.results.outcomes.postgres import PostgresOutcomes
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.errors import RunNotFrozen
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.statistics.columns import ScoreChunk
from services.results.statistics.figure import Figure
from services.results.summaries import close_run
from services.results.summaries.close_run import FULL_STARTS, MAX_STARTS, CloseFailed, CloseRun
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, choice_sample, new_id, plan_of, scored
from tests.fakes.results.stores import close_run_of, postgres_stores
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNSCORED = TokenUsage(1000, 50)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            yield PostgresSession(pool, QUERIES)


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(close_run, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(close_run, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(hold_lease, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(hold_lease, "RENEWALS", 20)


class HeldOutcomes(PostgresOutcomes):
    """Its scores come when the test lets them; it counts who asks."""

    asked = 0
    may_go_on: asyncio.Event

    async def scores(self, run_id: str, window: range, metrics: Sequence[str]) -> AsyncIterator[ScoreChunk]:
        HeldOutcomes.asked += 1
        async for chunk in super().scores(run_id, window, metrics):
            yield chunk
            await HeldOutcomes.may_go_on.wait()


async def recorded(session: PostgresSession) -> RunPlan:
    stores, sample_set_id = postgres_stores(session), new_id()
    await stores.sample_sets.stage(sample_set_id, [choice_sample(at, sample_set_id) for at in range(4)])
    await stores.sample_sets.commit(sample_set_id, 4)
    plan = replace(plan_of([4], [sample_set_id]), facts=RunFacts(benchmark="toy", model="p/a"))
    await stores.records.open(plan, 1)
    await stores.outcomes.record([scored(plan.run_id, answered(at)) for at in range(4)])
    return plan


def replica(session: PostgresSession) -> CloseRun:
    HeldOutcomes.asked, HeldOutcomes.may_go_on = 0, asyncio.Event()
    stores = replace(postgres_stores(session), outcomes=HeldOutcomes(session, SystemClock()))
    return close_run_of(stores).close_run


async def test_two_replicas_compute_a_close_once_and_answer_the_same_progress(
    session: PostgresSession,
) -> None:
    plan, replicas = await recorded(session), [replica(session) for _ in range(2)]

    async def shares() -> list[float]:
        closings = [
            await one.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False) for one in replicas
        ]
        assert [closing.summary for closing in closings] == [None, None]
        return [closing.share for closing in closings]

    async def are_same() -> bool:
        return await shares() == [0.25, 0.25] or await shares() == [1.0, 1.0]

    await eventually(are_same, "both answer how far the one is that computes")
    assert (HeldOutcomes.asked, [len(one.computing) for one in replicas]) == (1, [1, 0])
    HeldOutcomes.may_go_on.set()

    async def is_closed() -> bool:
        closing = await replicas[1].close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
        return closing.summary is not None

    await eventually(is_closed, "the other answers the summary")
    assert HeldOutcomes.asked == 1

    async def is_given_back() -> bool:
        lease = {"run_id": plan.run_id, "work": "close", "epoch": 1}
        return await session.fetchval("read_lease_share", **lease) is None

    # The summary is there a moment before.
    await eventually(is_given_back, "the lease is given back")


async def test_a_cancel_at_another_replica_ends_the_figures(session: PostgresSession) -> None:
    plan, (first, second) = await recorded(session), [replica(session) for _ in range(2)]
    await first.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    [computing] = first.computing.values()

    async def is_closed() -> bool:
        closing = await second.close(plan.run_id, 1, RunState.CANCELLED, allow_partial=True)
        return closing.summary is not None

    await eventually(is_closed, "the other closes it as cancelled")
    await eventually(computing.task.cancelled, "the first ends its figures")
    summary = await postgres_stores(session).summaries.find(plan.run_id, 1)
    assert summary is not None
    assert summary.problems == ("Figures were not computed: the run was cancelled while it was closing.",)
    assert (summary.answered, summary.tasks[0].figures["acc"]) == (4, Figure())
    assert (await postgres_stores(session).records.get(plan.run_id)).state is RunState.CANCELLED
    assert first.computing == {}


def close_of(plan: RunPlan) -> Work:
    return Work(WorkKind.CLOSE, plan.run_id, 1)


async def acquired(leases: PostgresLeases, plan: RunPlan) -> Lease:
    """The lease of a replica, which waits for the end of the lease before it."""
    found: list[Lease] = []

    async def is_acquired() -> bool:
        lease = await leases.acquire(close_of(plan), 0.3)
        found.extend([lease] if lease else [])
        return lease is not None

    await eventually(is_acquired, "no other holds it")
    return found[0]


async def test_the_lease_of_a_killed_replica_ends_and_starts_are_counted(
    session: PostgresSession,
) -> None:
    plan = await recorded(session)
    for starts in range(1, FULL_STARTS + 1):
        # Gets the lease, and is killed.
        leases = PostgresLeases(session=session, holder=new_id())
        assert await acquired(leases, plan) == Lease(close_of(plan), starts)
    summary = await close_run_of(postgres_stores(session)).close(
        plan.run_id, 1, RunState.COMPLETED, allow_partial=False
    )
    assert summary.problems == (
        f"Figures were not computed: it failed {FULL_STARTS} times; the log of results has details.",
    )


async def test_a_replica_that_stops_leaves_its_close_to_others(session: PostgresSession) -> None:
    plan, stopped = await recorded(session), replica(session)
    await stopped.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    await stopped.stop()
    assert stopped.computing == {}
    lease = await PostgresLeases(session=session, holder=new_id()).acquire(close_of(plan), 1)
    assert lease is not None
    assert (lease.starts, lease.is_withdrawn) == (1, False)


async def closed_without_figures(session: PostgresSession) -> RunPlan:
    """Each start fails until the run is closed without figures."""
    plan = await recorded(session)
    for _ in range(FULL_STARTS):
        await acquired(PostgresLeases(session=session, holder=new_id()), plan)
    closer = close_run_of(postgres_stores(session))
    summary = await closer.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False, unscored=UNSCORED)
    assert summary.problems
    assert summary.tasks[0].figures["acc"] == Figure()
    return plan


async def closed_at(session: PostgresSession, plan: RunPlan) -> datetime:
    row = await session.fetchrow("read_closed_run", run_id=plan.run_id)
    assert row is not None
    moment: datetime = row["closed_at"]
    return moment


async def test_a_run_without_figures_is_closed_again_and_keeps_its_place(session: PostgresSession) -> None:
    plan, again = await closed_without_figures(session), replica(session)
    listed_at = await closed_at(session, plan)
    assert (await again.close_again(plan.run_id)).summary is None
    summaries = postgres_stores(session).summaries
    kept = await summaries.find(plan.run_id, 1)
    assert kept is not None
    assert kept.problems, "until the figures are computed"
    HeldOutcomes.may_go_on.set()

    async def has_figures() -> bool:
        closed = await summaries.find(plan.run_id, 1)
        return closed is not None and not closed.problems

    await eventually(has_figures, "the summary is replaced")
    closing = await again.close_again(plan.run_id)
    assert closing.summary is not None
    assert closing.summary.tasks[0].figures["acc"].mean is not None
    assert (closing.summary.unscored, closing.summary.usage) == (UNSCORED, kept.usage)
    assert HeldOutcomes.asked == 1, "a run that has its figures keeps them"
    leaderboard = PostgresLeaderboard(session=session)
    closed = await leaderboard.closed_run(plan.run_id)
    assert closed is not None
    assert closed.closed_at == listed_at
    assert (await postgres_stores(session).records.get(plan.run_id)).state is RunState.COMPLETED


async def test_a_run_that_could_not_be_closed_at_all_is_closed_again(session: PostgresSession) -> None:
    plan, stores = await recorded(session), postgres_stores(session)
    for _ in range(MAX_STARTS):
        await acquired(PostgresLeases(session=session, holder=new_id()), plan)
    closer = close_run_of(stores)
    with pytest.raises(CloseFailed):
        await closer.close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)

    async def has_figures() -> bool:
        summary = (await closer.close_run.close_again(plan.run_id)).summary
        return summary is not None and (summary.problems, summary.answered) == ((), 4)

    await eventually(has_figures, "it has its figures")


async def test_a_run_that_takes_outcomes_is_not_closed_again(session: PostgresSession) -> None:
    plan = await recorded(session)
    with pytest.raises(RunNotFrozen):
        await replica(session).close_again(plan.run_id)
