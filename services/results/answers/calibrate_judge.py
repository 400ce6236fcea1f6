"""Corrects the figure of a judging run by the marks on the answers that it judges."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from services.results.answers.errors import NoJudgingRun
from services.results.answers.marks import Mark, MarkedVerdict
from services.results.answers.postgres import PostgresMarks
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.statistics.judged.judged_scores import confusion, judged_scores
from services.results.statistics.judged.prediction_powered import (
    MIN_MARKS,
    CalibratedFigure,
    calibrated_figure,
)

_METRIC = "verdict"
_SCORES = {Mark.GOLDEN: 1.0, Mark.WRONG: 0.0, None: np.nan}


@dataclass(frozen=True, slots=True)
class CalibratedJudge:
    """`error_rate`: share of the marked samples that the judge has wrong; None without marks."""

    figure: CalibratedFigure
    error_rate: float | None

    @property
    def advice(self) -> str:
        """A sentence about the marks that it takes."""
        figure = self.figure
        if not figure.is_calibrated:
            missing = MIN_MARKS - figure.marks
            return f"Uncalibrated: {missing} more marks of answers drawn at random calibrate it."
        if figure.more_marks is None:
            return "Marks alone cannot halve the interval: it takes more samples."
        return f"{figure.more_marks:,} more marks of answers drawn at random halve the interval."


@dataclass(frozen=True, slots=True)
class CalibrateJudge:
    records: RunRecordStore
    marks: PostgresMarks

    async def calibrate(self, run_id: str) -> CalibratedJudge:
        """Raises RecordNotFound, NoJudgingRun."""
        plan = (await self.records.get(run_id)).plan
        metric = _verdict_metric(plan)
        verdicts = await self.marks.verdicts(run_id, _judged_run(plan), metric)
        return await asyncio.to_thread(_calibrated, verdicts)


def _judged_run(plan: RunPlan) -> str:
    """The benchmark of a judging run; suites and data sets may have the metric of verdicts too."""
    try:
        return str(UUID(plan.facts.benchmark))
    except ValueError as error:
        raise NoJudgingRun(run_id=plan.run_id) from error


def _verdict_metric(plan: RunPlan) -> str:
    """Its key. Pairs have another metric too: a mark says whether an answer is right, not which is better."""
    found = [scored for scoring in plan.scorings for scored in scoring.scored_metrics]
    if [scored.metric.name for scored in found] != [_METRIC]:
        raise NoJudgingRun(run_id=plan.run_id)
    return found[0].key


def _calibrated(verdicts: Sequence[MarkedVerdict]) -> CalibratedJudge:
    scores = judged_scores(
        np.array([one.sample for one in verdicts], dtype=np.int64),
        np.array([one.verdict for one in verdicts], dtype=np.float64),
        np.array([_SCORES[one.mark] for one in verdicts], dtype=np.float64),
    )
    return CalibratedJudge(calibrated_figure(scores), confusion(scores).error_rate)
