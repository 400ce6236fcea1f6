"""The judges of a run, as its page shows them."""

from collections.abc import Sequence

from services.gateway.api.judging.routes import JudgingRunShown, judging_runs
from services.gateway.api.runs.schemas import FigureShown
from services.gateway.backends.calls import Results, Scheduler
from services.gateway.pages.rows.figure import Figure


class JudgedByRow(JudgingRunShown):
    """A judge with its figure as pages show figures."""

    @property
    def shown(self) -> Figure:
        return _shown(self.figure)

    @property
    def shown_first(self) -> Figure | None:
        """Of pairs: how often the answer that is shown first is preferred."""
        return _shown(self.first_place) if self.first_place else None

    @property
    def shown_calibrated(self) -> Figure:
        """Corrected by marks."""
        one = self.calibrated
        if one is None:
            return Figure(metric="verdict")
        low, high = one.ci95 or (None, None)
        return Figure(metric="verdict", mean=one.mean, ci_low=low, ci_high=high, n=one.samples)


def _shown(figure: FigureShown | None) -> Figure:
    if figure is None:
        return Figure(metric="verdict")
    low, high = figure.ci95 or (None, None)
    return Figure(metric="verdict", mean=figure.mean, ci_low=low, ci_high=high, n=figure.n)


async def judged_by_rows(
    scheduler: Scheduler, results: Results, run_id: str
) -> tuple[Sequence[JudgedByRow], int]:
    judges, total = await judging_runs(scheduler, results, run_id)
    return [JudgedByRow.model_validate(judge.model_dump()) for judge in judges], total
