"""Views of the page that scores a run's answers again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import run_pb2, summary_pb2
from services.gateway.http.presentation import interval, optional
from services.gateway.pages.rescoring.form import RULES, RescoreForm, Rule, metrics_for
from services.gateway.pages.runs_table import RunRow


@dataclass(frozen=True, slots=True)
class FigureBeside:
    """A figure as recorded and under the other scoring, each None where that scoring has no such metric."""

    metric: str
    recorded: float | None
    recorded_half: float | None
    now: float | None
    now_half: float | None

    @property
    def change(self) -> float | None:
        return None if self.recorded is None or self.now is None else self.now - self.recorded


@dataclass(frozen=True, slots=True)
class RescoredView:
    """The result of scoring again.

    `unscored`: the first answers without a score, each with its rollout, where there are several, and why.
    """

    figures: Sequence[FigureBeside]
    scored: int
    changed: int
    unparsed: int
    recorded_unparsed: int
    unscored_count: int
    unscored: Sequence[tuple[str, int | None, str]]


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
        faults=faults,
        outcome=_outcome(response, has_rollouts=run.rollouts > 1) if response else None,
    )


def _outcome(response: rescore_pb2.RescoreTaskResponse, *, has_rollouts: bool) -> RescoredView:
    recorded = {figure.metric: figure for figure in response.recorded.metrics}
    now = {figure.metric: figure for figure in response.summary.metrics}
    return RescoredView(
        figures=[
            FigureBeside(name, *_figure(recorded.get(name)), *_figure(now.get(name)))
            for name in dict.fromkeys((*recorded, *now))
        ],
        scored=response.summary.answered,
        changed=response.changed,
        unparsed=response.summary.unparsed,
        recorded_unparsed=response.recorded.unparsed,
        unscored_count=response.unscored,
        unscored=[
            (each.row_id or str(each.sample), each.rollout if has_rollouts else None, each.problem)
            for each in response.unscored_answers
        ],
    )


def _figure(figure: summary_pb2.MetricFigure | None) -> tuple[float | None, float | None]:
    if figure is None:
        return None, None
    ends = interval(figure)
    return optional(figure, "mean"), (ends[1] - ends[0]) / 2 if ends else None
