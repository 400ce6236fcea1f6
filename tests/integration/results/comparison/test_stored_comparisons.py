"""Comparisons of closed runs are stored after the close, and made after a crash."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
import pytest_asyncio

from proctor.values.run import RunState
from services.common.errors import DependencyUnavailable
from services.common.postgres import PostgresSession
from services.results.comparison.compare_runs import TOOK_TOO_LONG, ComparePair, StoreComparison
from services.results.comparison.compared_metrics import ComparedMetrics
from services.results.comparison.comparison import Difference
from services.results.leaderboard import compare_peers
from services.results.leaderboard.compare_peers import ComparePeers
from services.results.leaderboard.process_leases import ProcessLeases
from services.results.leaderboard.rank_models import LeaderboardQuery
from services.results.leases import hold_lease
from services.results.leases.lease import Lease, Work, WorkKind
from services.results.leases.postgres import PostgresLeases
from services.results.runs.run_plan import RunRecord
from tests.fakes.eventually import eventually
from tests.fakes.results.memory_leaderboard import ThreadCalls
from tests.fakes.results.paired_runs import FAILED, PairedRuns, TaskOfRun, postgres_session, single
from tests.fakes.results.recorded_run import new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = [f"sample {at}" for at in range(30)]


def answers(right: int) -> TaskOfRun:
    return single(TEXTS, *[1] * right, *[0] * (30 - right))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_session() as opened:
        yield opened


@pytest.fixture
def runs(session: PostgresSession) -> PairedRuns:
    return PairedRuns(session)


async def test_a_closed_run_is_compared_with_other_models_and_its_own_previous_run(runs: PairedRuns) -> None:
    oldest, previous, other = [
        await runs.run(answers(right), model=model) for model, right in (("p/a", 9), ("p/a", 10), ("p/b", 30))
    ]
    await runs.compare_peers.compare()
    latest = await runs.run(answers(20), model="p/a")
    await runs.compare_peers.compare()
    ids = [plan.run_id for plan in (latest, previous, other, oldest)]
    stored = await runs.comparisons.of_runs(ids, "acc")
    assert stored[latest.run_id, previous.run_id].difference == pytest.approx(1 / 3)
    assert stored[latest.run_id, other.run_id].difference == pytest.approx(-1 / 3)
    [turned] = (await runs.comparisons.of_runs([other.run_id, latest.run_id], "acc")).values()
    assert turned == stored[latest.run_id, other.run_id].reversed()
    p_values = await runs.comparisons.p_values(ids, "acc")
    assert p_values[0, 2] == turned.p_value
    assert (latest.run_id, oldest.run_id) not in stored
    compared = (await runs.compared(latest, previous)).differences[-1].estimate
    kept = stored[latest.run_id, previous.run_id]
    assert (kept.p_value, kept.ci_low, kept.pairs, kept.test) == (
        compared.p_value,
        compared.ci_low,
        30,
        "exact McNemar",
    )


async def test_every_figure_of_the_benchmark_is_kept(runs: PairedRuns) -> None:
    plans = [await runs.run(answers(right)) for right in (10, 20)]
    await runs.compare_peers.compare()
    ids = [plan.run_id for plan in plans]
    for metric in ("acc", "mcc", "score"):
        assert len(await runs.comparisons.of_runs(ids, metric)) == 1
    assert await runs.comparisons.of_runs(ids, "bleu") == {}


async def test_only_runs_on_the_same_terms_are_compared(runs: PairedRuns) -> None:
    plans = [
        await runs.run(answers(20)),
        await runs.run(answers(10), suite_version=2),
        await runs.run(answers(10), limit=30),
        await runs.run(answers(10), missing_tasks=("t1",)),
    ]
    cancelled = await runs.open_run(answers(10))
    await runs.close(cancelled, RunState.CANCELLED)
    await runs.compare_peers.compare()
    assert await runs.waiting_run() is None
    assert await runs.comparisons.of_runs([plan.run_id for plan in (*plans, cancelled)], "acc") == {}


async def test_a_run_that_was_closed_again_is_compared_again(runs: PairedRuns) -> None:
    plans = [await runs.run(answers(right)) for right in (10, 20)]
    ids = [plan.run_id for plan in plans]
    await runs.compare_peers.compare()
    await runs.stores.records.open(plans[1], 2)
    assert await runs.comparisons.of_runs(ids, "acc") == {}
    await runs.close(plans[1], epoch=2)
    assert await runs.waiting_run() == ids[1]
    await runs.compare_peers.compare()
    assert len(await runs.comparisons.of_runs(ids, "acc")) == 1


@dataclass(frozen=True)
class BrokenComparePair(ComparePair):
    """Breaks on one run, as a fault of ours would, or as a Postgres that goes away."""

    broken_run: str
    error: Exception

    async def compare(
        self,
        runs: tuple[RunRecord, RunRecord],
        compared: ComparedMetrics,
        positions: tuple[int, int] = (0, 1),
    ) -> list[Difference]:
        if self.broken_run in [run.plan.run_id for run in runs]:
            raise self.error
        return await ComparePair.compare(self, runs, compared, positions)


def breaking(runs: PairedRuns, run_id: str, error: Exception) -> ComparePeers:
    compare_pair = BrokenComparePair(runs.stores.sample_sets, runs.pairs, ThreadCalls(), run_id, error)
    store_comparison = StoreComparison(runs.stores.records, runs.comparisons, compare_pair)
    return replace(runs.compare_peers, store_comparison=store_comparison)


async def three(runs: PairedRuns) -> Sequence[str]:
    await runs.compare_peers.compare()
    return [(await runs.run(answers(right))).run_id for right in (10, 15, 20)]


async def test_a_comparison_that_breaks_is_left_out_and_the_others_are_made(runs: PairedRuns) -> None:
    broken, *others = await three(runs)
    await breaking(runs, broken, ZeroDivisionError()).compare()
    assert await runs.waiting_run() is None
    stored = await runs.comparisons.of_runs([broken, *others], "acc")
    assert set(stored) == {(others[0], others[1])}


async def test_what_an_outage_cut_short_is_made_later(runs: PairedRuns) -> None:
    ids = await three(runs)
    with pytest.raises(DependencyUnavailable):
        await breaking(runs, ids[2], DependencyUnavailable(dependency="Postgres")).compare()
    assert await runs.waiting_run() in ids
    await runs.compare_peers.compare()
    assert len(await runs.comparisons.of_runs(ids, "acc")) == 3


@dataclass(frozen=True)
class StuckComparePair(ComparePair):
    """Never finishes a comparison with one run."""

    stuck_run: str
    asked: list[frozenset[str]] = field(default_factory=list)

    async def compare(
        self,
        runs: tuple[RunRecord, RunRecord],
        compared: ComparedMetrics,
        positions: tuple[int, int] = (0, 1),
    ) -> list[Difference]:
        ids = frozenset(run.plan.run_id for run in runs)
        self.asked.append(ids)
        if self.stuck_run in ids:
            await asyncio.Event().wait()
        return await ComparePair.compare(self, runs, compared, positions)


def stuck_on(runs: PairedRuns, run_id: str) -> tuple[ComparePeers, list[frozenset[str]]]:
    compare_pair = StuckComparePair(runs.stores.sample_sets, runs.pairs, ThreadCalls(), run_id)
    store_comparison = StoreComparison(runs.stores.records, runs.comparisons, compare_pair)
    return replace(runs.compare_peers, store_comparison=store_comparison), compare_pair.asked


async def test_a_pair_that_never_ends_holds_no_other_up_and_is_marked(
    runs: PairedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_peers, "PAIR_SECONDS", 1.0)
    monkeypatch.setattr(compare_peers, "SLOW_PAIR_SECONDS", 1.5)
    stuck, *others = await three(runs)
    comparing, asked = stuck_on(runs, stuck)
    await comparing.compare()
    assert await runs.waiting_run() is None
    # Each slow one was put off until the others were made, and tried once more.
    assert asked.count(frozenset(others)) == 1
    assert {asked.count(frozenset((stuck, other))) for other in others} <= {2, 3}
    assert frozenset(others) not in asked[-2:]
    stored = await runs.comparisons.of_runs([stuck, *others], "acc")
    assert {pair: one.test for pair, one in stored.items() if one.p_value is None} == dict.fromkeys(
        [(stuck, other) for other in others], TOOK_TOO_LONG
    )
    assert stored[others[0], others[1]].p_value is not None


async def test_two_replicas_compare_each_pair_once(runs: PairedRuns) -> None:
    ids = await three(runs)
    first, asked = stuck_on(runs, "none")
    second, asked_too = stuck_on(runs, "none")
    await asyncio.gather(first.compare(), second.compare())
    assert await runs.waiting_run() is None
    # A pair of runs that are compared at the same time may be made twice; the last pair is made by one alone.
    assert 3 <= len(asked) + len(asked_too) <= 5
    assert len(await runs.comparisons.of_runs(ids, "acc")) == 3


async def test_a_lease_ends_by_itself_and_a_run_that_was_started_comes_last(runs: PairedRuns) -> None:
    first, second, _ = await three(runs)
    held = await runs.leased_runs.acquire(WorkKind.COMPARISON, 60)
    lapsed = await runs.leased_runs.acquire(WorkKind.COMPARISON, 0)
    assert held is not None
    assert lapsed is not None
    assert (held.work.run_id, lapsed.work.run_id) == (first, second)
    starts = []
    while (lease := await runs.leased_runs.acquire(WorkKind.COMPARISON, 60)) is not None:
        starts.append((lease.work.run_id == second, lease.starts))
    assert starts == [(False, 1), (True, 2)]
    for lease in (held, lapsed):
        await runs.leased_runs.leases.release(lease.work, counts=True)


class CountedLeases(PostgresLeases):
    renewals = 0

    async def renew(self, work: Work, share: float, seconds: float) -> bool:
        self.renewals += 1
        return await super().renew(work, share, seconds)


async def test_a_lease_is_renewed_while_its_run_is_compared(
    runs: PairedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold_lease, "RENEWALS", 300)
    await runs.compare_peers.compare()
    record = await runs.stores.records.get((await runs.run(answers(10))).run_id)
    leases = CountedLeases(runs.session, holder=new_id())

    async def compare(_: Lease) -> bool:
        await eventually(lambda: leases.renewals >= 3, "the lease is renewed")
        assert await runs.leased_runs.acquire(WorkKind.COMPARISON, 60) is None
        await runs.peers.mark_compared(record)
        return True

    await ProcessLeases(runs.leased_runs.waiting, leases).process(WorkKind.COMPARISON, compare)
    assert await runs.waiting_run() is None


async def test_a_replica_that_stops_gives_its_lease_back(runs: PairedRuns) -> None:
    await runs.compare_peers.compare()
    record = await runs.stores.records.get((await runs.run(answers(10))).run_id)
    has_begun = asyncio.Event()

    async def compare(_: Lease) -> bool:
        has_begun.set()
        return await asyncio.Event().wait()

    working = asyncio.ensure_future(runs.leased_runs.process(WorkKind.COMPARISON, compare))
    await has_begun.wait()
    assert await runs.leased_runs.acquire(WorkKind.COMPARISON, 60) is None
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    again = await runs.leased_runs.acquire(WorkKind.COMPARISON, 60)
    assert again is not None
    assert (again.work.run_id, again.starts) == (record.plan.run_id, 1)
    await runs.leased_runs.leases.delete(again.work)
    await runs.peers.mark_compared(record)


async def test_what_a_leaderboard_of_best_runs_misses_is_compared_after_it_was_read(
    runs: PairedRuns,
) -> None:
    best = await runs.run(answers(30), model="p/a")
    await runs.compare_peers.compare()
    await runs.run(answers(3), model="p/a")
    other = await runs.run(answers(5), model="p/b")
    await runs.compare_peers.compare()
    ids = [best.run_id, other.run_id]
    assert await runs.comparisons.of_runs(ids, "acc") == {}
    query = LeaderboardQuery(runs.benchmark, "acc", is_best=True)
    before = await runs.rank_models.rank(query)
    assert ([one.rank for one in before.entries], before.pending) == ([1, 1], 1)
    await runs.compare_pending.compare()
    leaderboard = await runs.rank_models.rank(query)
    assert [(one.model, one.rank) for one in leaderboard.entries] == [("p/a", 1), ("p/b", 2)]
    assert leaderboard.pending == 0
    assert len(await runs.comparisons.of_runs(ids, "acc")) == 1


async def test_runs_without_a_common_sample_are_not_tied_and_not_compared_twice(runs: PairedRuns) -> None:
    plans = [await runs.run(answers(20)), await runs.run(single(["another"] * 30, *[1] * 15, *[0] * 15))]
    assert (await runs.rank_models.rank(LeaderboardQuery(runs.benchmark, "acc"))).pending == 1
    await runs.compare_pending.compare()
    leaderboard = await runs.rank_models.rank(LeaderboardQuery(runs.benchmark, "acc"))
    assert leaderboard.pending == 0
    assert [one.tied_with for one in leaderboard.entries] == [(), ()]
    assert [len(one.not_compared_with) for one in leaderboard.entries] == [1, 1]
    assert await runs.comparisons.compared_with(plans[0].run_id, [plans[1].run_id])


async def test_a_pair_is_kept_once_whichever_of_its_runs_is_named_first(runs: PairedRuns) -> None:
    ids = [(await runs.run(answers(right))).run_id for right in (10, 20)]
    await runs.store_comparison.store(ids[0], ids[1], 60)
    await runs.store_comparison.store(ids[1], ids[0], 60)
    assert len(await runs.session.fetch("list_comparisons", run_ids=ids, metric="acc")) == 1


async def test_a_run_that_failed_on_much_of_a_small_task_is_listed_as_unranked(runs: PairedRuns) -> None:
    small = [f"small {at}" for at in range(10)]
    await runs.run(answers(20), single(small, *[1] * 8, 0, 0), model="p/good")
    await runs.run(answers(20), single(small, 1, *[FAILED] * 9), model="p/lucky")
    leaderboard = await runs.rank_models.rank(LeaderboardQuery(runs.benchmark, "score"))
    assert [one.model for one in leaderboard.entries] == ["p/good"]
    assert [(one.model, one.unranked_because) for one in leaderboard.unranked] == [
        ("p/lucky", ("more than 5% failed: t1",))
    ]
