"""What a report says beside its figures: suspicious rollouts, and answers and verdicts without a score."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proctor.values.scoring import MetricUse
from services.results.export.exported_run import ExportedRun
from services.results.export.html_report import HtmlReport
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import RunSummary, TaskSummary
from tests.fakes.results.recorded_run import plan_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def page_of(figures: Mapping[str, Figure], plan: RunPlan, unparsed: int = 0) -> str:
    task = TaskSummary(
        task="t0",
        version="1",
        num_fewshot=0,
        scoring_method=None,
        is_stand_in=False,
        row_source="",
        row_source_revision="",
        total=20,
        answered=20,
        failed=0,
        unparsed=unparsed,
        figures=figures,
    )
    summary = RunSummary("run", 1, is_partial=False, tasks=(task,), total=20, computed_at=NOON)
    run = ExportedRun(RunRecord(plan, 1, is_frozen=True), is_partial=False, figures=summary)
    return HtmlReport(run).begin().decode()


@pytest.mark.parametrize(
    ("unsuspected", "said"),
    [(1.0, ""), (0.85, "Of the rollouts 3 of 20 suspicious: score without them 0.412.")],
)
def test_suspicions_are_beside_the_figures(unsuspected: float, said: str) -> None:
    figures = {
        "reward": Figure(mean=0.5),
        "unsuspected": Figure(mean=unsuspected),
        "reward_unsuspected": Figure(mean=0.412),
    }
    page = page_of(figures, replace(plan_of([20]), run_id="run"))
    assert ("suspicious" in page, said in page) == (bool(said), True)


def test_verdicts_that_cannot_be_read_have_no_score() -> None:
    plan = replace(plan_of([20]), run_id="run")
    answers = page_of({"acc": Figure(mean=0.5)}, plan, unparsed=3)
    assert "3 answers could not be parsed; they count as not right." in answers
    assert "15.0% of the answers could not be parsed and count as not right" in answers
    judged = "0a0a0a0a-0000-4000-8000-000000000001"
    [task] = plan.tasks
    verdicts = replace(task, scoring=replace(task.scoring, metrics=(MetricUse("verdict"),)))
    judging = replace(plan, tasks=(verdicts,), facts=replace(plan.facts, benchmark=judged))
    page = page_of({"verdict": Figure(mean=0.5)}, judging, unparsed=3)
    assert "3 verdicts could not be parsed; they have no score." in page
    assert "15.0% of the verdicts could not be parsed and have no score" in page
    assert "count as not right" not in page
    assert f"judges run {judged}" in page
