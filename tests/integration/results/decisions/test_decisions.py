"""Decisions on a real Postgres: which outcomes count, and that one decision is stored for both runs."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.values.comparison import DecisionVerdict, GateVerdict, sample_order
from proctor.values.run import RunState
from services.common.postgres import PostgresSession
from services.results.comparison.decide_gate import DecideGate, GateQuery
from services.results.comparison.gate import GateRules
from services.results.decisions.decide_runs import DecideRuns, DecisionQuery
from services.results.decisions.postgres import PostgresAnsweredSamples
from services.results.leaderboard.postgres import PostgresLeaderboard
from services.results.runs.run_plan import RunPlan
from tests.fakes.results.paired_runs import FAILED, PairedRuns, TaskOfRun, postgres_session, right
from tests.fakes.results.recorded_run import new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS, SEED = 300, 4
TEXTS = [f"row {number}" for number in range(ROWS)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_session() as opened:
        yield opened


def deciding(runs: PairedRuns) -> DecideRuns:
    """As a replica that has read nothing yet."""
    return DecideRuns(runs.stores.records, PostgresAnsweredSamples(runs.session))


def query_of(first: RunPlan, base: RunPlan) -> DecisionQuery:
    return DecisionQuery(first.run_id, base.run_id, SEED, alpha=0.05)


async def test_two_rollouts_of_two_tasks_are_decided_and_every_caller_gets_the_first_decision(
    session: PostgresSession,
) -> None:
    runs = PairedRuns(session)
    half = ROWS // 2

    def tasks(score: float) -> list[TaskOfRun]:
        rollouts = [[right(1.0), right(score)]] * half
        return [TaskOfRun(TEXTS[:half], rollouts), TaskOfRun(TEXTS[half:], rollouts)]

    first, base = [await runs.open_run(*tasks(score)) for score in (1.0, 0.0)]
    query = query_of(first, base)
    found = await asyncio.gather(*(deciding(runs).decide(query) for _ in range(3)))
    assert found[0] is not None
    assert found == [found[0]] * 3
    assert (found[0].verdict, found[0].difference) == (DecisionVerdict.BETTER, 0.5)
    assert (found[0].pairs, found[0].failed) == (ROWS, 0)
    for plan in (first, base):
        assert (await runs.stores.records.get(plan.run_id)).decision == found[0]
    # A deleted run takes nothing from the other one.
    await runs.stores.records.delete(first.run_id)
    assert await deciding(runs).decide(query) == found[0]


async def test_failures_are_no_pairs_and_what_is_not_recorded_ends_the_look(session: PostgresSession) -> None:
    runs, order = PairedRuns(session), sample_order(SEED, ROWS)
    failed, missing = set(order[:20]), set(order[250:])
    scores = [
        [] if number in missing else [FAILED if number in failed else right(1.0)] for number in range(ROWS)
    ]
    first = await runs.open_run(TaskOfRun(TEXTS, scores))
    base = await runs.open_run(TaskOfRun(TEXTS, [[right(0.0)]] * ROWS))
    found = await deciding(runs).decide(query_of(first, base))
    assert found is not None
    assert (found.pairs, found.failed, found.difference) == (230, 20, 1.0)
    # The run that stopped says so in its summary; the one that has answered all is a whole run.
    for plan in (first, base):
        await runs.close(plan, RunState.COMPLETED)
    summaries = [await runs.stores.summaries.find(plan.run_id, 1) for plan in (first, base)]
    assert [summary.decision if summary else None for summary in summaries] == [found, None]
    compared = await runs.compared(first, base)
    warnings = [warning for warning in compared.warnings if warning.startswith("Until decided: ")]
    assert [warning.partition(". ")[0] for warning in warnings] == [f"Until decided: {first.run_id}"]
    # Also by rules under which the pairs that there are would be enough.
    rules = GateRules(margin_points=50, max_failed_share=1)
    gating = DecideGate(runs.stores.records, runs.compare_runs)
    gate = await gating.decide(GateQuery(first.run_id, base.run_id, rules))
    assert (gate.verdict, gate.reasons) == (
        GateVerdict.INCONCLUSIVE,
        [f"Run {first.run_id} stopped early."],
    )
    leaderboard = PostgresLeaderboard(session)
    listed = await leaderboard.candidates(runs.benchmark, "score", None, is_best=False)
    ranked = {one.run.run_id: one for one in listed}
    assert ranked[base.run_id].can_be_ranked
    assert not ranked[first.run_id].can_be_ranked
    assert ranked[first.run_id].run.result.failing.startswith("stopped early")


async def test_an_unknown_run_is_not_decided(session: PostgresSession) -> None:
    query = DecisionQuery(new_id(), new_id(), SEED, alpha=0.05)
    assert await deciding(PairedRuns(session)).decide(query) is None
