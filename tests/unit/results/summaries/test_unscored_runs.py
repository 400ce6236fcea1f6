"""Runs without metrics: answers are kept and counted, and no figure is made of them."""

from dataclasses import replace
from functools import partial

import pytest

from proctor.values.outcome import Answer, OutcomeStatus
from proctor.values.run import RunState
from proctor.values.sample import Prompt
from proctor.values.scoring import MetricUse, OutputType, TaskGroup, TaskScoring
from services.common.errors import InvalidParameter
from services.results.comparison.compared_metrics import all_metrics, chosen_metrics, main_metrics
from services.results.comparison.errors import NothingToCompare
from services.results.leaderboard.add_baselines import AddBaselines
from services.results.leaderboard.process_leases import ProcessLeases
from services.results.rescoring.rescore_task import ScoringOverride, other_scoring
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.score import Score, ScoringTarget
from services.results.scoring.score_answer import score_answer
from tests.fakes.results.inline_scorer import InlineScorer
from tests.fakes.results.memory_leaderboard import (
    MemoryBaselines,
    MemoryLeaderboard,
    MemoryWaitingRuns,
    ThreadCalls,
)
from tests.fakes.results.memory_leases import MemoryLeases
from tests.fakes.results.memory_results import MemoryProgress, MemoryRows, memory_stores
from tests.fakes.results.recorded_run import batch, failed, new_id, plan_of, said
from tests.fakes.results.stores import close_run_of, record_outcomes_of

UNSCORED = TaskScoring(OutputType.GENERATE_UNTIL, ())
DATASET = "ds_1"


def dataset_plan(sample_set_id: str, *metrics: str, size: int = 3) -> RunPlan:
    plan = plan_of([size], [sample_set_id])
    scoring = replace(UNSCORED, metrics=tuple(MetricUse(name) for name in metrics))
    return replace(
        plan,
        tasks=(replace(plan.tasks[0], task="rows", scoring=scoring),),
        facts=RunFacts(DATASET, 0, "p/m", dataset_name="prompts.jsonl"),
        groups=(TaskGroup(DATASET, ("rows",)),),
    )


@pytest.mark.parametrize("text", ["", " ", "four"])
def test_an_answer_that_is_held_against_nothing_is_never_unparsed(text: str) -> None:
    assert score_answer(compile_scoring(UNSCORED), ScoringTarget(), Answer(text)) == Score("")


async def test_a_run_without_metrics_goes_from_open_to_close_and_has_counts_alone() -> None:
    rows = MemoryRows()
    stores = memory_stores(rows)
    sample_set_id = new_id()
    samples = [StoredSample(at, at, bytes([at]) * 32, Prompt(f"{at}?"), ScoringTarget()) for at in range(3)]
    await stores.sample_sets.stage(sample_set_id, samples)
    await stores.sample_sets.commit(sample_set_id, 3)
    plan = dataset_plan(sample_set_id)
    await stores.records.open(plan, 1)
    record = record_outcomes_of(stores, MemoryProgress()).record
    await record([batch(plan.run_id, [said(0, "one"), said(1, ""), failed(2)])])
    listed = rows.counted(plan.run_id)
    assert [one.status for one in listed] == [OutcomeStatus.SCORED] * 2 + [OutcomeStatus.FAILED]
    assert not any(one.scores for one in listed)

    close = close_run_of(stores).close
    summary = await close(plan.run_id, 1, RunState.COMPLETED, allow_partial=False)
    assert (summary.answered, summary.failed, summary.unparsed) == (2, 1, 0)
    assert [dict(task.figures) for task in summary.tasks] == [{}]
    assert [dict(group.figures) for group in summary.groups] == [{}]

    baselines, leases = MemoryBaselines(rows), MemoryLeases()
    await AddBaselines(
        stores.records,
        stores.sample_sets,
        stores.summaries,
        baselines,
        ProcessLeases(MemoryWaitingRuns(rows, leases), leases),
        ThreadCalls(),
        InlineScorer(),
    ).add()
    kept = MemoryLeaderboard(rows)
    assert await kept.metrics(DATASET, None) == []
    assert await kept.baselines([plan.run_id]) == {}


def test_comparing_with_a_run_without_metrics_is_refused_in_one_sentence() -> None:
    plans = dataset_plan(new_id()), dataset_plan(new_id(), "exact_match")
    choices = (all_metrics, main_metrics, partial(chosen_metrics, tasks=(), words=["exact_match"]))
    for choose in choices:
        with pytest.raises(NothingToCompare) as refused:
            choose(plans)
        assert refused.value.facts == {"metrics": "none; exact_match"}


def test_a_run_without_metrics_is_rescored_with_some_only() -> None:
    plan = dataset_plan(new_id())
    other = other_scoring(plan, 0, ScoringOverride((MetricUse("contains"),)))
    assert [metric.name for metric in other.metrics] == ["contains"]
    with pytest.raises(InvalidParameter, match="metrics must be given: the run was ordered without any"):
        other_scoring(plan, 0, ScoringOverride())
