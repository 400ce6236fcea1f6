"""The judges of a run, as its page shows them."""

from collections.abc import Sequence

from services.gateway.api.judging.routes import JudgingRunShown, judging_runs
from services.gateway.backends.calls import Results, Scheduler
from services.gateway.pages.rows.figure import Figure


class JudgedByRow(JudgingRunShown):
    """A judge with its figure as pages show figures."""

    @property
    def shown(self) -> Figure:
        figure = self.figure
        if figure is None:
            return Figure(metric="verdict")
        low, high = figure.ci95 or (None, None)
        return Figure(metric="verdict", mean=figure.mean, ci_low=low, ci_high=high, n=figure.n)


async def judged_by_rows(
    scheduler: Scheduler, results: Results, run_id: str
) -> tuple[Sequence[JudgedByRow], int]:
    judges, total = await judging_runs(scheduler, results, run_id)
    return [JudgedByRow.model_validate(judge.model_dump()) for judge in judges], total
