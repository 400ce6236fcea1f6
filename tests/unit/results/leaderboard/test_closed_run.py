"""Reasons that keep a closed run off the leaderboard."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proctor.values.scoring import ScoringMethod
from services.results.leaderboard.closed_run import benchmark_result
from services.results.runs.conditions import EvaluatedRun
from services.results.summaries.run_summary import RunSummary, TaskSummary
from tests.fakes.results.recorded_run import plan_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(("share", "failing"), [(0.05, "more than 5% failed: t0"), (0.1, "")])
def test_a_task_fails_by_the_share_that_its_run_was_ordered_with(share: float, failing: str) -> None:
    plan = replace(plan_of([100]), max_failed_share=share)
    task = TaskSummary(
        task="t0",
        version="",
        num_fewshot=0,
        scoring_method=ScoringMethod.LOGLIKELIHOOD,
        is_stand_in=False,
        row_source="",
        row_source_revision="",
        total=100,
        answered=94,
        failed=6,
        unparsed=0,
        figures={},
    )
    summary = RunSummary(plan.run_id, 1, is_partial=False, tasks=(task,), total=100, computed_at=NOON)
    assert benchmark_result(EvaluatedRun(plan), summary).failing == failing
