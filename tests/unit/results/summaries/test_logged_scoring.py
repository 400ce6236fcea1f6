"""Scores of another tool's log, and ours beside them."""

from dataclasses import replace

from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.rescoring.rescore_task import ScoringOverride, other_scoring
from tests.fakes.results.recorded_run import plan_of


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
