"""The report of a run of rollouts says how many are suspicious."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.results.export.exported_run import ExportedRun
from services.results.export.html_report import HtmlReport
from services.results.runs.run_plan import RunRecord
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import RunSummary, TaskSummary
from tests.fakes.results.recorded_run import plan_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


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
        unparsed=0,
        figures=figures,
    )
    plan = replace(plan_of([20]), run_id="run")
    summary = RunSummary("run", 1, is_partial=False, tasks=(task,), total=20, computed_at=NOON)
    run = ExportedRun(RunRecord(plan, 1, is_frozen=True), is_partial=False, figures=summary)
    page = HtmlReport(run).begin().decode()
    assert ("suspicious" in page, said in page) == (bool(said), True)
