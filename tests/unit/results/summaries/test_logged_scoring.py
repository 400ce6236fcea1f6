"""Scores of another tool's log, and ours beside them."""

import math
from dataclasses import replace

import pytest

from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.outcomes.record_logged import LoggedOutcome, RecordLogged
from services.results.rescoring.rescore_task import ScoringOverride, other_scoring
from services.results.summaries.corpus_figures import corpus_figures
from tests.fakes.results.memory_results import MemoryRows, memory_stores
from tests.fakes.results.recorded_run import answered, choice_sample, plan_of


def test_a_rescored_f1_is_ours_also_where_that_of_the_log_is_a_mean() -> None:
    uses = (MetricUse("f1", aggregation="mean"), MetricUse("acc"))
    logged = TaskScoring(OutputType.MULTIPLE_CHOICE, uses, is_logged=True)
    plan = plan_of([3])
    plan = replace(plan, tasks=(replace(plan.tasks[0], scoring=logged),))
    assert all(scored.has_numbers for scored in plan.scorings[0].scored_metrics)
    ours = other_scoring(plan, 0, ScoringOverride())
    assert [(metric.name, metric.aggregation) for metric in ours.metrics] == [("f1", ""), ("acc", "")]
    assert not ours.scored_metrics[0].has_numbers
    assert not ours.needs_stored_values


async def test_a_perplexity_of_a_log_is_that_of_all_its_log_probabilities() -> None:
    uses = (MetricUse("acc"), MetricUse("perplexity"))
    logged = TaskScoring(OutputType.LOGLIKELIHOOD, uses, is_logged=True)
    plan = plan_of([2])
    plan = replace(plan, tasks=(replace(plan.tasks[0], scoring=logged),))
    stores = memory_stores(rows := MemoryRows())
    [task] = plan.tasks
    await stores.sample_sets.stage(task.sample_set_id, [choice_sample(at) for at in range(2)])
    await stores.sample_sets.commit(task.sample_set_id, 2)
    await stores.records.open(plan, 1)
    logprobs = (-0.5, -2.0)
    given = [
        LoggedOutcome(answered(number), {"acc": 1.0, "perplexity": (logprob, 1.0)})
        for number, logprob in enumerate(logprobs)
    ]
    await RecordLogged(stores.records, stores.outcomes).record(plan.run_id, 1, given)
    stored = [(one.outcome.sample, one.scores) for one in rows.outcomes.values()]
    assert [dict(scores)["perplexity"] for _, scores in stored] == [[-0.5, 1.0], [-2.0, 1.0]]
    figure = corpus_figures(plan.scorings[0], stored, None)["perplexity"]
    assert figure.mean == pytest.approx(math.exp(1.25))
    assert plan.less_is_better == {"perplexity"}


def test_a_mean_of_a_log_has_the_direction_that_the_log_or_our_metric_of_the_name_has() -> None:
    uses = (
        MetricUse("kept"),
        MetricUse("wer", less_is_better=True),
        MetricUse("ter"),
        MetricUse("perplexity", aggregation="mean"),
    )
    plan = plan_of([3])
    logged = TaskScoring(OutputType.GENERATE_UNTIL, uses, is_logged=True)
    plan = replace(plan, tasks=(replace(plan.tasks[0], scoring=logged),))
    assert plan.less_is_better == {"wer", "ter", "perplexity"}
    assert all(scored.has_numbers for scored in plan.scorings[0].scored_metrics)
