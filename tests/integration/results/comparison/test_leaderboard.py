"""Boards and histories follow how runs are closed, in memory and in Postgres alike."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest

from proctor.values.rollout import AgentKind
from proctor.values.run import RunKind, RunState
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import ModelPrice
from services.common.errors import DependencyUnavailable, TookTooLong
from services.results.leaderboard.add_baselines import SLOW_RUN_SECONDS
from services.results.leaderboard.list_history import NEWEST
from services.results.leaderboard.ports import (
    HistoryRange,
    HistoryTotals,
)
from services.results.leaderboard.process_leases import MAX_STARTS
from services.results.leases.lease import Work, WorkKind
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.runs.run_plan import PlannedTask
from services.results.statistics.figure import Figure
from tests.fakes.results.inline_scorer import InlineScorer
from tests.fakes.results.leaderboard_world import A_DAY_AGO, World
from tests.fakes.results.memory_leaderboard import (
    ThreadCalls,
)
from tests.fakes.results.recorded_run import new_id
from tests.fakes.results.stores import close_run_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

T = TypeVar("T")


async def test_the_latest_and_the_best_completed_run_of_each_model_are_found(world: World) -> None:
    best, latest, other = [
        await world.run(model, right=right) for model, right in (("p/a", 4), ("p/a", 2), ("p/b", 1))
    ]
    for plan in (best, latest, other):
        await world.close(plan)
    assert await world.listed() == [("p/a", latest.run_id), ("p/b", other.run_id)]
    assert await world.listed(is_best=True) == [("p/a", best.run_id), ("p/b", other.run_id)]
    entries = {
        one.run.model: one for one in await world.kept.candidates(world.benchmark, "acc", None, is_best=True)
    }
    assert (entries["p/a"].is_latest, entries["p/b"].is_latest) == (False, True)
    assert (entries["p/a"].run_count, entries["p/b"].run_count) == (2, 1)
    [entry] = [
        one
        for one in await world.kept.candidates(world.benchmark, "acc", None, is_best=False)
        if one.run.model == "p/a"
    ]
    assert (entry.previous_run_id, entry.figure.mean) == (best.run_id, 0.5)


@pytest.mark.parametrize("kind", [AgentKind.ORACLE, AgentKind.NONE])
async def test_a_run_that_asks_no_model_is_in_no_list_of_models(world: World, kind: AgentKind) -> None:
    asked = await world.run("p/a", right=2, agent_kind=AgentKind.SHELL)
    unasked = await world.run("p/a", right=4, agent_kind=kind)
    for plan in (asked, unasked):
        await world.close(plan)
    assert await world.listed() == await world.listed(is_best=True) == [("p/a", asked.run_id)]
    for model in ("", "p/a"):
        assert await world.history(model) == [(asked.run_id, RunState.COMPLETED)]
    totals = await world.kept.totals(HistoryRange(world.benchmark, "", A_DAY_AGO, NEWEST, 10))
    assert totals.runs == 1
    # Its own page and the list of runs show what it came to.
    [closed] = await world.kept.runs([unasked.run_id])
    assert closed.result.mean("acc") == 1.0


async def test_after_the_latest_run_was_deleted_the_one_before_counts_again(world: World) -> None:
    earlier, latest = [await world.run("p/a", right=right) for right in (4, 2)]
    for plan in (earlier, latest):
        await world.close(plan)
    assert await world.listed() == [("p/a", latest.run_id)]
    await DeleteRunRecord(world.stores.records, world.stores.outcomes).delete(latest.run_id)
    assert await world.listed() == [("p/a", earlier.run_id)]
    assert await world.history() == [(earlier.run_id, RunState.COMPLETED)]


async def test_a_run_that_is_cancelled_after_its_close_leaves_the_leaderboard(world: World) -> None:
    earlier, latest = [await world.run("p/a", right=right) for right in (4, 2)]
    for plan in (earlier, latest):
        await world.close(plan)
    await world.close(latest, RunState.CANCELLED)
    assert await world.listed() == [("p/a", earlier.run_id)]
    assert await world.history() == [
        (latest.run_id, RunState.CANCELLED),
        (earlier.run_id, RunState.COMPLETED),
    ]
    assert (await world.stores.records.get(latest.run_id)).state is RunState.CANCELLED


async def test_a_cancel_beside_the_close_leaves_one_state(world: World) -> None:
    for _ in range(20):
        plan = await world.run("p/a", right=2)
        close = close_run_of(world.stores).close
        states = (RunState.COMPLETED, RunState.CANCELLED)
        await asyncio.gather(*(close(plan.run_id, 1, state, allow_partial=True) for state in states))
        state = (await world.stores.records.get(plan.run_id)).state
        assert dict(await world.history())[plan.run_id] is state
        assert (("p/a", plan.run_id) in await world.listed()) is (state is RunState.COMPLETED)


async def test_an_entry_is_read_as_it_was_kept(world: World) -> None:
    await world.close(await world.run("p/a", right=1, limit=4))
    [entry] = await world.kept.candidates(world.benchmark, "score", None, is_best=False)
    kept = entry.run.result
    assert (kept.conditions.value("limit"), kept.is_whole, kept.answered, kept.failed, kept.unparsed) == (
        "4",
        False,
        4,
        0,
        0,
    )
    assert kept.figures["acc"].figure.n == 4
    assert kept.figures["acc"].task_count == 1
    assert entry.figure == kept.figures["acc"].figure
    assert isinstance(entry.figure, Figure)
    assert await world.kept.metrics(world.benchmark, None) == ["acc", "mcc", "score"]
    assert await world.kept.metrics("nothing", None) == []


async def test_closing_again_changes_nothing(world: World) -> None:
    plan = await world.run("p/a", right=4)
    await world.close(plan)
    await world.close(plan)
    assert await world.listed() == [("p/a", plan.run_id)]
    assert await world.history() == [(plan.run_id, RunState.COMPLETED)]


async def test_two_replicas_that_close_at_once_list_a_run_once(world: World) -> None:
    plans = [await world.run(f"p/{index % 3}", right=2) for index in range(6)]
    await asyncio.gather(*(world.close(plan) for plan in plans for _ in range(3)))
    assert sorted(run_id for run_id, _ in await world.history()) == sorted(plan.run_id for plan in plans)
    assert [model for model, _ in await world.listed()] == ["p/0", "p/1", "p/2"]


async def test_a_run_that_failed_is_in_the_history_and_not_on_the_leaderboard(world: World) -> None:
    whole, broken = await world.run("p/a", right=1), await world.run("p/a", right=4)
    await world.close(whole)
    await world.close(broken, RunState.FAILED)
    assert await world.listed() == [("p/a", whole.run_id)]
    assert await world.listed(is_best=True) == [("p/a", whole.run_id)]
    assert await world.history("p/a") == [
        (broken.run_id, RunState.FAILED),
        (whole.run_id, RunState.COMPLETED),
    ]


async def test_a_retried_run_stands_as_it_was_closed_last(world: World) -> None:
    plan, other = await world.run("p/a", right=4), await world.run("p/b", right=1)
    await world.close(plan, RunState.FAILED)
    await world.close(other)
    await world.stores.records.open(plan, 2)
    await world.close(plan, epoch=2)
    assert await world.listed() == [("p/a", plan.run_id), ("p/b", other.run_id)]
    assert await world.history() == [
        (plan.run_id, RunState.COMPLETED),
        (other.run_id, RunState.COMPLETED),
    ]
    await world.stores.records.open(plan, 3)
    await world.close(plan, RunState.CANCELLED, epoch=3)
    assert await world.listed() == [("p/b", other.run_id)]
    assert [state for _, state in await world.history("p/a")] == [RunState.CANCELLED]


async def test_an_older_run_that_is_closed_later_is_the_latest(world: World) -> None:
    opened_first, opened_second = await world.run("p/a", right=1), await world.run("p/a", right=2)
    await world.close(opened_second)
    await world.close(opened_first)
    assert await world.listed() == [("p/a", opened_first.run_id)]


async def test_limited_runs_of_a_model_have_an_entry_for_each_limit(world: World) -> None:
    whole = await world.run("p/a", right=1)
    first, short, shorter = [await world.run("p/a", right=4, limit=limit) for limit in (8, 8, 5)]
    for plan in (whole, first, short, shorter):
        await world.close(plan)
    kept = [("p/a", plan.run_id) for plan in (whole, short, shorter)]
    assert await world.listed() == sorted(kept)


async def test_a_history_is_of_one_kind_where_one_is_asked_for(world: World) -> None:
    plan, over_rows = await world.run("p/kind", right=1), await world.run("p/kind", right=1)
    over_rows = replace(over_rows, facts=replace(over_rows.facts, dataset_name="rows.jsonl"), run_id=new_id())
    await world.stores.records.open(over_rows, 1)
    for one in (plan, over_rows):
        await world.close(one)
    runs = {plan.run_id, over_rows.run_id}
    for kind, expected in ((RunKind.SUITE, plan), (RunKind.DATASET, over_rows)):
        page = HistoryRange("", "", A_DAY_AGO, NEWEST, 500, kind)
        assert [run.run_id for run in await world.kept.page(page) if run.run_id in runs] == [expected.run_id]
    everything = HistoryRange("", "", A_DAY_AGO, NEWEST, 500)
    assert {run.run_id for run in await world.kept.page(everything)} >= runs


async def test_a_project_has_its_own_latest_run(world: World) -> None:
    mine, theirs = (
        await world.run("p/a", right=1, project_id=7),
        await world.run("p/a", right=2, project_id=8),
    )
    await world.close(mine)
    await world.close(theirs)
    assert await world.listed(project_id=7) == [("p/a", mine.run_id)]
    assert await world.listed(project_id=9) == []
    assert await world.kept.metrics(world.benchmark, 9) == []


async def test_a_run_without_a_benchmark_is_not_listed(world: World) -> None:
    nameless = replace(world, benchmark="")
    before = len(await nameless.history())
    await nameless.close(await nameless.run("p/a", right=1))
    assert await nameless.listed() == []
    assert len(await nameless.history()) == before


async def test_pages_of_a_history_follow_the_key(world: World) -> None:
    plans = [await world.run("p/a", right=index % 4) for index in range(5)]
    for plan in plans:
        await world.close(plan)
    first = await world.kept.page(HistoryRange(world.benchmark, "p/a", A_DAY_AGO, NEWEST, 3))
    after = (first[-1].closed_at, first[-1].run_id)
    rest = await world.kept.page(HistoryRange(world.benchmark, "p/a", A_DAY_AGO, after, 3))
    assert [run.run_id for run in (*first, *rest)] == [plan.run_id for plan in reversed(plans)]
    recently = HistoryRange(world.benchmark, "", first[-1].closed_at, NEWEST, 100)
    assert await world.kept.count(recently) == len(await world.kept.page(recently)) == 3


async def test_a_run_is_closed_when_its_summary_is_stored_after_its_freeze(world: World) -> None:
    plan = await world.run("p/late", right=1)
    await world.close(plan)
    frozen_at = (await world.stores.records.get(plan.run_id)).frozen_at
    [closed] = await world.kept.page(HistoryRange(world.benchmark, "p/late", A_DAY_AGO, NEWEST, 3))
    assert frozen_at is not None
    assert closed.closed_at > frozen_at


async def test_a_history_is_of_one_state_and_is_summed_up(world: World) -> None:
    completed, failed = await world.run("p/sums", right=1), await world.run("p/sums", right=1)
    await world.close(completed)
    await world.close(failed, RunState.FAILED)
    everything = HistoryRange(world.benchmark, "p/sums", A_DAY_AGO, NEWEST, 9)
    runs = await world.kept.page(everything)
    assert await world.kept.totals(everything) == HistoryTotals(
        runs=2, completed_runs=1, answered=sum(run.result.answered for run in runs), failed=0
    )
    only_failed = replace(everything, state=RunState.FAILED)
    assert [run.run_id for run in await world.kept.page(only_failed)] == [failed.run_id]
    assert (await world.kept.totals(only_failed)).runs == 1


async def test_the_cost_of_a_history_is_that_of_the_runs_with_a_price(world: World) -> None:
    price = ModelPrice(1_000_000.0, 2_000_000.0, currency="EUR")
    priced = [await world.run("p/spent", right=1, price=price) for _ in range(2)]
    for plan in (*priced, await world.run("p/spent", right=1)):
        await world.close(plan)
    [cost, _] = [(await world.summary_of(plan)).cost or 0.0 for plan in priced]
    totals = await world.kept.totals(HistoryRange(world.benchmark, "p/spent", A_DAY_AGO, NEWEST, 9))
    assert (totals.runs, totals.priced_runs, totals.currency) == (3, 2, "EUR")
    assert totals.cost == pytest.approx(2 * cost) != 0


async def test_a_history_is_counted_and_summed_up_to_a_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("services.results.leaderboard.postgres", "tests.fakes.results.memory_leaderboard"):
        monkeypatch.setattr(f"{module}.MAX_COUNTED", 1)
    for state in (RunState.COMPLETED, RunState.FAILED, RunState.FAILED):
        await world.close(await world.run("p/many", right=1), state)
    everything = HistoryRange(world.benchmark, "p/many", A_DAY_AGO, NEWEST, 9)
    assert await world.kept.count(everything) == 2
    totals = await world.kept.totals(everything)
    assert (totals.runs, totals.completed_runs) == (2, 0)


async def test_a_completed_run_gets_baselines_once_it_is_closed(world: World) -> None:
    plan, failed = await world.run("p/a", right=1), await world.run("p/b", right=1)
    await world.close(plan)
    await world.close(failed, RunState.FAILED)
    await world.add_baselines.add()
    found = await world.kept.baselines([failed.run_id, plan.run_id])
    means = {name: figures["acc"].figure.mean for name, figures in found.items()}
    assert means == {"random": 0.5, "majority": 0.5, "longest": 0.5}
    assert found["majority"]["score"].figure.n == 4
    assert await world.kept.baselines([failed.run_id]) == {}


async def test_the_baselines_of_a_sample_set_are_computed_once(world: World) -> None:
    plan = await world.run("p/a", right=1)
    again = replace(plan, run_id=new_id())
    await world.stores.records.open(again, 1)
    await world.close(plan)
    await world.add_baselines.add()
    [task] = plan.tasks
    first = await world.baselines.find(task, plan.scoring_method)
    assert first is not None
    await world.baselines.keep(task, plan.scoring_method, {})
    await world.close(again)
    await world.add_baselines.add()
    assert await world.baselines.find(task, plan.scoring_method) == first
    assert await world.baselines.find(task, ScoringMethod.GENERATE) is None
    assert await world.kept.baselines([again.run_id])


@dataclass(frozen=True)
class SlowCalls(ThreadCalls):
    """Figures over one sample set never come."""

    sample_set_id: str

    async def call(self, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        task = arguments[0]
        if isinstance(task, PlannedTask) and task.sample_set_id == self.sample_set_id:
            raise TookTooLong
        return await super().call(seconds, function, *arguments)


async def test_baselines_are_scored_as_answers_are_beside_the_event_loop(world: World) -> None:
    plan = await world.run("p/m", right=4, method=ScoringMethod.GENERATE)
    await world.close(plan)
    scorer = InlineScorer()
    await replace(world.add_baselines, scorer=scorer).add()
    assert scorer.called == 1
    assert await world.kept.baselines([plan.run_id])


async def test_baselines_that_take_too_long_hold_no_other_run_up(world: World) -> None:
    slow, quick = [await world.run(model, right=2) for model in ("p/a", "p/b")]
    for plan in (slow, quick):
        await world.close(plan)
    calls = SlowCalls(slow.tasks[0].sample_set_id)
    await replace(world.add_baselines, calls=calls).add()
    assert await world.kept.baselines([quick.run_id])
    assert await world.kept.baselines([slow.run_id]) == {}
    assert await world.leased_runs.acquire(WorkKind.BASELINES, 60) is None
    [problem] = (await world.summary_of(slow)).problems
    assert problem.startswith(f"Baselines cannot be computed: they take longer than {SLOW_RUN_SECONDS:g} s;")


@dataclass(frozen=True)
class LosingCalls(ThreadCalls):
    """The process that works on one sample set is killed each time."""

    sample_set_id: str

    async def call(self, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        task = arguments[0]
        if isinstance(task, PlannedTask) and task.sample_set_id == self.sample_set_id:
            raise DependencyUnavailable(dependency="the process that scores")
        return await super().call(seconds, function, *arguments)


async def test_baselines_whose_process_is_killed_each_time_come_last_and_are_given_up(world: World) -> None:
    killed, behind = [await world.run(model, right=2) for model in ("p/a", "p/b")]
    for plan in (killed, behind):
        await world.close(plan)
    adding = replace(world.add_baselines, calls=LosingCalls(killed.tasks[0].sample_set_id))
    for _ in range(MAX_STARTS):
        with pytest.raises(DependencyUnavailable):
            await adding.add()
    assert await world.kept.baselines([behind.run_id])
    await adding.add()
    assert await world.kept.baselines([killed.run_id]) == {}
    [problem] = (await world.summary_of(killed)).problems
    assert problem.startswith(
        f"Baselines cannot be computed: computing them was cut short {MAX_STARTS} times;"
    )
    assert await world.leased_runs.acquire(WorkKind.BASELINES, 60) is None


async def test_what_a_late_replica_leased_again_is_not_begun_again(world: World) -> None:
    plan = await world.run("p/a", right=2)
    await world.close(plan)
    await world.add_baselines.add()
    await world.leased_runs.leases.acquire(Work(WorkKind.BASELINES, plan.run_id, 1), 0)
    assert await world.leased_runs.acquire(WorkKind.BASELINES, 60) is None
