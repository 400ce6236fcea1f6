"""The figures of a finished run, as its page shows them."""

from collections.abc import Sequence

from pydantic import BaseModel

from proctor.v1 import run_pb2, summary_pb2
from proctor.values.run import unparsed_warning
from proctor.values.scoring import benchmark_group
from proctor.values.usage import TokenUsage
from proctor.wire.contamination import contamination_sentences
from proctor.wire.report import suspicions_of
from services.gateway.api.runs.job import choice_scoring, timing_shown
from services.gateway.api.runs.schemas import PercentilesShown, TimingShown
from services.gateway.http.presentation import present
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.rows.figure import Figure

_TIMES = (
    ("queue_seconds", "In the engine's queue", "s"),
    ("first_token_seconds", "To the first token", "s"),
    ("between_tokens_seconds", "Between tokens", "s"),
    ("total_seconds", "Whole answer", "s"),
    ("tokens_per_second", "Tokens per second", ""),
)


class FigureRow(Figure):
    """A figure of a task or a group; `is_first`: it is the first of them."""

    name: str
    note: str
    is_first: bool


class FiguresView(BaseModel):
    """All figures of a closed run."""

    # Of the whole benchmark, or of its only task.
    headline: Figure | None
    groups: list[FigureRow]
    tasks: list[FigureRow]
    scale: Scale
    # On a scale of shares every share has its place; else the first metric of each task has.
    is_of_shares: bool
    timing: TimingShown
    answered: int
    failed: int
    unparsed: int
    total: int
    usage: TokenUsage
    cost: float | None
    currency: str
    # The date of the prices; empty where they have none.
    as_of: str
    gpu_seconds: float
    reused_answers: int
    problems: list[str]
    environment: dict[str, str]
    contamination: list[str]
    # Of rollouts: how many are suspicious, and the score of the others.
    suspicions: str
    is_judging: bool

    @property
    def unparsed_rate(self) -> float | None:
        return self.unparsed / self.answered if self.answered else None

    @property
    def warning(self) -> str:
        return unparsed_warning(self.unparsed_rate, is_judging=self.is_judging)

    @property
    def has_figures(self) -> bool:
        return any(row.mean is not None for row in (*self.groups, *self.tasks))

    @property
    def lm_eval_tasks(self) -> Sequence[str]:
        """Tasks whose answers are offered as files of lm-eval, which hold one task each."""
        return list(dict.fromkeys(row.name for row in self.tasks)) if self.answered else []

    @property
    def times(self) -> Sequence[tuple[str, str, PercentilesShown]]:
        """Percentiles that are known, with their names and units."""
        known = ((name, unit, getattr(self.timing, field)) for field, name, unit in _TIMES)
        return [each for each in known if each[-1]]

    def is_drawn(self, row: FigureRow) -> bool:
        return _is_drawn(row, is_of_shares=self.is_of_shares)


def figures_view(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> FiguresView:
    tasks = [row for task in summary.tasks for row in _task_rows(task)]
    # The group of a suite with one task says the same again.
    groups = [row for group in summary.groups if len(group.tasks) > 1 for row in _group_rows(group)]
    rows = [*groups, *tasks]
    is_of_shares = all(row.is_share for row in rows if row.is_first)
    return present(
        FiguresView,
        summary,
        summary.price,
        run,
        headline=_headline(summary),
        groups=groups,
        tasks=tasks,
        scale=Scale.of_figures(row for row in rows if _is_drawn(row, is_of_shares=is_of_shares)),
        is_of_shares=is_of_shares,
        timing=timing_shown(summary.timing),
        suspicions=suspicions_of(summary),
        contamination=list(contamination_sentences(summary)),
        is_judging=run.order.HasField("judge"),
    )


def _headline(summary: summary_pb2.RunSummary) -> Figure | None:
    benchmark = benchmark_group(summary.groups)
    figures = benchmark.metrics if benchmark else summary.tasks[0].metrics if len(summary.tasks) == 1 else ()
    return present(Figure, figures[0]) if figures and figures[0].HasField("mean") else None


def _is_drawn(row: FigureRow, *, is_of_shares: bool) -> bool:
    return row.is_share if is_of_shares else row.is_first


def _task_rows(task: summary_pb2.TaskSummary) -> list[FigureRow]:
    notes = [
        choice_scoring(task.scoring_method) or "",
        f"{task.num_fewshot} shots" if task.num_fewshot else "",
        "rows are not the official split" if task.is_stand_in else "",
    ]
    return _rows(task.task, task.metrics, notes)


def _group_rows(group: summary_pb2.GroupSummary) -> list[FigureRow]:
    missing = f"without {', '.join(group.missing_tasks)}" if group.missing_tasks else ""
    return _rows(group.group, group.metrics, [f"{len(group.tasks)} tasks", missing])


def _rows(name: str, figures: Sequence[summary_pb2.MetricFigure], notes: Sequence[str]) -> list[FigureRow]:
    """The first one has the notes."""
    note = " · ".join(note for note in notes if note)
    return [
        present(FigureRow, figure, name=name, note="" if i else note, is_first=not i)
        for i, figure in enumerate(figures)
    ]
