"""Views of the page that scores a run's answers again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import run_pb2, summary_pb2
from services.gateway.api.rescoring import Rescored, rescored
from services.gateway.http.presentation import present
from services.gateway.pages.rescoring.form import (
    REASONING,
    RULES,
    ReasoningOption,
    RescoreForm,
    Rule,
    metrics_for,
)
from services.gateway.pages.rows.figure import Figure
from services.gateway.pages.rows.runs import RunRow


@dataclass(frozen=True, slots=True)
class FigureBeside:
    """A figure as recorded and under the other scoring, each empty where that scoring has no such metric."""

    metric: str
    recorded: Figure
    now: Figure

    @property
    def change(self) -> float | None:
        before, after = self.recorded.mean, self.now.mean
        return None if before is None or after is None else after - before


class RescoredView(Rescored):
    """The result of scoring again; `scored` answers have a score."""

    scored: int
    rows: list[FigureBeside]


@dataclass(frozen=True, slots=True)
class RescoreView:
    """The form with what was entered, and what came of it."""

    run: RunRow
    form: RescoreForm
    tasks: Sequence[str]
    task: str
    metrics: Sequence[str]
    has_rules: bool
    rules: Sequence[Rule]
    reasoning: Mapping[str, ReasoningOption]
    faults: Mapping[str, str]
    outcome: RescoredView | None

    @property
    def path(self) -> str:
        return f"/runs/{self.run.job_id}/rescore"

    def fault(self, field: str) -> str:
        return self.faults.get(field, "")


def chosen_task(summary: summary_pb2.RunSummary, name: str) -> summary_pb2.TaskSummary:
    """The task of this name, else the first; an empty one where the run has none."""
    known = {task.task: task for task in summary.tasks}
    return known.get(name) or next(iter(summary.tasks), summary_pb2.TaskSummary())


def rescore_view(
    run: RunRow,
    summary: summary_pb2.RunSummary,
    form: RescoreForm,
    faults: Mapping[str, str],
    response: rescore_pb2.RescoreTaskResponse | None = None,
) -> RescoreView:
    task = chosen_task(summary, form.task)
    return RescoreView(
        run=run,
        form=form,
        tasks=[each.task for each in summary.tasks],
        task=task.task,
        metrics=metrics_for(task),
        # Log-likelihoods of choices have no text that a rule could read.
        has_rules=task.scoring_method != run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
        rules=RULES,
        reasoning=REASONING,
        faults=faults,
        outcome=_outcome(response, run.job_id, task.task) if response else None,
    )


def _outcome(response: rescore_pb2.RescoreTaskResponse, run_id: str, task: str) -> RescoredView:
    recorded = {figure.metric: present(Figure, figure) for figure in response.recorded.metrics}
    now = {figure.metric: present(Figure, figure) for figure in response.summary.metrics}
    names = dict.fromkeys((*recorded, *now))
    return rescored(
        RescoredView,
        response,
        job_id=run_id,
        task=task,
        scored=response.summary.answered,
        rows=[FigureBeside(name, recorded.get(name, Figure()), now.get(name, Figure())) for name in names],
    )
