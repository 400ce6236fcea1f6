"""Gates of runs that have nothing to pair: what is wrong with the runs is said, and nothing passes."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from proctor.values.comparison import GateVerdict
from proctor.values.run import RunState
from services.common.postgres import PostgresSession
from services.results.comparison.decide_gate import DecideGate, GateQuery
from services.results.comparison.errors import NothingToCompare
from services.results.comparison.gate import Gate
from services.results.runs.run_plan import RunPlan
from tests.fakes.results.paired_runs import FAILED, PairedRuns, postgres_session, single
from tests.fakes.results.recorded_run import CHOICE_SCORING

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNSCORED = replace(CHOICE_SCORING, metrics=())
TEXTS = ["a", "b", "c"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_session() as opened:
        yield opened


async def gated(runs: PairedRuns, run: RunPlan, base: RunPlan) -> Gate:
    gating = DecideGate(runs.stores.records, runs.compare_runs)
    return await gating.decide(GateQuery(run.run_id, base.run_id))


async def test_a_run_that_failed_without_an_answer_or_a_metric_is_inconclusive(
    session: PostgresSession,
) -> None:
    runs = PairedRuns(session)
    base = await runs.run(single(TEXTS, {}, {}, {}), scoring=UNSCORED)
    run = await runs.open_run(single(TEXTS, FAILED, FAILED, FAILED), scoring=UNSCORED)
    await runs.close(run, RunState.FAILED)
    gate = await gated(runs, run, base)
    assert (gate.verdict, list(gate.tasks)) == (GateVerdict.INCONCLUSIVE, [])
    no_metric, state = gate.reasons
    assert no_metric.startswith("The runs have no metric in common (none)")
    assert state == f"Run {run.run_id} ended as failed."
    assert [one.run_id for one in gate.runs] == [run.run_id, base.run_id]


async def test_runs_over_other_rows_are_inconclusive(session: PostgresSession) -> None:
    runs = PairedRuns(session)
    base = await runs.run(single(TEXTS, 1, 1, 1))
    run = await runs.run(single(["x", "y", "z"], 1, 1, 1))
    gate = await gated(runs, run, base)
    assert gate.verdict is GateVerdict.INCONCLUSIVE
    assert "have no sample in common" in gate.reasons[0]


async def test_like_runs_without_a_metric_are_refused(session: PostgresSession) -> None:
    runs = PairedRuns(session)
    first, second = [await runs.run(single(TEXTS, {}, {}, {}), scoring=UNSCORED) for _ in range(2)]
    with pytest.raises(NothingToCompare):
        await gated(runs, first, second)
