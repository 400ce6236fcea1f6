"""The judges of a run, as its page shows them."""

from collections.abc import Sequence

from proctor.v1 import run_pb2
from proctor.values.judging.panels import asked_of_panels
from services.gateway.api.judging.panels import PanelJudgeShown, PanelShown, panel_shown, unless_archived
from services.gateway.api.judging.routes import JudgingRunShown, judging_runs
from services.gateway.api.runs.schemas import FigureShown
from services.gateway.backends.calls import Results, Scheduler
from services.gateway.pages.rows.figure import Figure


class JudgedByRow(JudgingRunShown):
    """A judge with its figure as pages show figures."""

    @property
    def is_of_pairs(self) -> bool:
        return bool(self.against) or self.against_target

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


def refused_judges(run: run_pb2.Run) -> str:
    """Which judges that its order names were not ordered, and why; "" for none."""
    return " ".join(change.detail for change in run.changes if change.action == "refuse")


async def judged_by_rows(
    scheduler: Scheduler, results: Results, run_id: str
) -> tuple[Sequence[JudgedByRow], int]:
    judges, total = await judging_runs(scheduler, results, run_id)
    return [JudgedByRow.model_validate(judge.model_dump()) for judge in judges], total


class PanelView(PanelShown):
    """A panel as pages show it."""

    @property
    def shown(self) -> Figure:
        low, high = self.ci95 or (None, None)
        return Figure(metric="verdict", mean=self.mean, ci_low=low, ci_high=high, n=self.answers)

    @property
    def leanings(self) -> Sequence[tuple[str, str]]:
        """Judges that lean, and in which way."""
        found = [(judge.model_id, _leaning(judge)) for judge in self.judges]
        return [(model, words) for model, words in found if words]


async def panels_of(results: Results, judges: Sequence[JudgedByRow]) -> Sequence[PanelView]:
    """One for each question that several models have answered."""
    asked = asked_of_panels(
        (f"{judge.prompt}, {judge.scale}", judge.model_id, judge.job_id)
        for judge in judges
        if judge.status == "completed" and not judge.is_of_pairs
    )
    # One at a time: each reads all verdicts of its judges.
    panels = [await unless_archived(panel_shown(results, job_id)) for job_id in asked]
    return [PanelView.model_validate(panel.model_dump()) for panel in panels if panel]


def _leaning(judge: PanelJudgeShown) -> str:
    """Leanings whose interval leaves out 0; "" for none."""
    words = []
    if (ends := judge.length.ci95) and judge.length.value is not None and not ends[0] <= 0 <= ends[1]:
        words.append(
            f"{judge.length.value:+.3f} for each doubling of an answer's length, against {judge.against}"
        )
    own = judge.own_family
    if own and own.value is not None:
        ci95 = f" (95 % from {own.ci95[0]:+.3f} to {own.ci95[1]:+.3f})" if own.ci95 else ""
        words.append(f"{own.value:+.3f}{ci95} for its own family, against judges of other families")
    return "; ".join(words)
