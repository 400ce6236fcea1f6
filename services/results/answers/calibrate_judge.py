"""Corrects the figure of a judging run by what people say of the answers that it judges."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proctor.values.metrics.catalogue import VERDICT
from services.results.annotations.postgres import PostgresAnnotations
from services.results.annotations.question import Question, question_of
from services.results.answers.errors import JudgedApart, NoJudgingRun
from services.results.answers.marks import Mark, MarkedVerdict
from services.results.answers.postgres import PostgresMarks
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.statistics.judged.judged_scores import JudgedScores, confusion, judged_scores
from services.results.statistics.judged.prediction_powered import (
    MIN_MARKS,
    CalibratedFigure,
    calibrated_difference,
    calibrated_figure,
)
from services.results.statistics.paired.difference_estimate import DifferenceEstimate

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
            return f"Uncalibrated: {_more_marks(MIN_MARKS - figure.marks, 'calibrate')} it."
        if figure.more_marks is None:
            return "Marks alone cannot halve the interval: it takes more samples."
        return f"{_more_marks(figure.more_marks, 'halve')} the interval."


def _more_marks(count: int, verb: str) -> str:
    one = count == 1
    return f"{count:,} more mark{'' if one else 's'} of answers drawn at random {verb}{'s' if one else ''}"


@dataclass(frozen=True, slots=True)
class CalibrateJudge:
    records: RunRecordStore
    marks: PostgresMarks
    annotations: PostgresAnnotations

    async def calibrate(self, run_id: str) -> CalibratedJudge:
        """By annotations of the judge's question, and by golden and wrong marks of the answers without one.

        Raises RecordNotFound, NoJudgingRun, PairsNotAnnotated.
        """
        return await asyncio.to_thread(_calibrated, await self._read(run_id))

    async def difference(self, run_id: str, against_run_id: str) -> DifferenceEstimate:
        """Of two judged runs, each corrected by its own marks. Raises `JudgedApart` too."""
        first, second = await self._read(run_id), await self._read(against_run_id)
        if first.compared_by != second.compared_by:
            raise JudgedApart(run_id=run_id, against_run_id=against_run_id)
        return await asyncio.to_thread(lambda: calibrated_difference(first.scores, second.scores))

    async def _read(self, run_id: str) -> "_Judging":
        plan = (await self.records.get(run_id)).plan
        if plan.judged_run_id is None:
            raise NoJudgingRun(run_id=run_id)
        question = question_of(plan)
        # The caller may not see the judged run, or it is deleted.
        judged = (await self.records.get(question.run_id)).plan
        verdicts = await self.marks.verdicts(run_id, question.run_id, _verdict_metric(plan))
        return _Judging(question, judged, verdicts, await self.annotations.drawn_scores(question))


@dataclass(frozen=True, slots=True)
class _Judging:
    """`judged` is the run whose answers the verdicts are on."""

    question: Question
    judged: RunPlan
    verdicts: Sequence[MarkedVerdict]
    annotated: Mapping[OutcomeKey, float]

    @property
    def compared_by(self) -> tuple[object, ...]:
        """Equal where samples of one number are one sample, and verdicts answer one question."""
        samples = tuple((task.sample_set_id, task.first_sample) for task in self.judged.tasks)
        return self.question.key, samples

    @property
    def scores(self) -> JudgedScores:
        return judged_scores(
            np.array([one.key[0] for one in self.verdicts], dtype=np.int64),
            np.array([one.verdict for one in self.verdicts], dtype=np.float64),
            np.array([self._mark(one) for one in self.verdicts], dtype=np.float64),
        )

    def _mark(self, one: MarkedVerdict) -> float:
        return self.annotated.get(one.key, _SCORES[one.mark])


def _verdict_metric(plan: RunPlan) -> str:
    """Its key in scores."""
    return next(
        scored.key
        for scoring in plan.scorings
        for scored in scoring.scored_metrics
        if scored.metric.name == VERDICT
    )


def _calibrated(judging: _Judging) -> CalibratedJudge:
    scores = judging.scores
    return CalibratedJudge(calibrated_figure(scores), confusion(scores).error_rate)
