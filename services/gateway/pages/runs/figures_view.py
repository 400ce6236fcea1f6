"""The figures of a finished run, as its page shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import run_pb2, summary_pb2
from services.gateway.api.runs.job import choice_scoring
from services.gateway.http.presentation import interval, optional
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.text import is_share

_TIMES = (
    ("queue", "In the engine's queue", "s"),
    ("first_token", "To the first token", "s"),
    ("between_tokens", "Between tokens", "s"),
    ("total", "Whole answer", "s"),
    ("tokens_per_second", "Tokens per second", ""),
)
_SHARE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure with its 95 % interval."""

    name: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    note: str
    is_first: bool

    @property
    def ends(self) -> tuple[float | None, ...]:
        return self.low, self.value, self.high

    @property
    def is_share(self) -> bool:
        return is_share(self.metric, *self.ends)


@dataclass(frozen=True, slots=True)
class TimingRow:
    name: str
    unit: str
    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class FiguresView:
    """All figures of a closed run."""

    groups: Sequence[FigureRow]
    tasks: Sequence[FigureRow]
    scale: Scale
    # On a scale of shares every share has its place; else the first metric of each task has.
    is_of_shares: bool
    timing: Sequence[TimingRow]
    answered: int
    failed: int
    unparsed: int
    total: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    currency: str
    gpu_seconds: float
    reused: int
    problems: Sequence[str]
    environment: Mapping[str, str]

    @property
    def has_figures(self) -> bool:
        return any(row.value is not None for row in (*self.groups, *self.tasks))

    @property
    def lm_eval_tasks(self) -> Sequence[str]:
        """Tasks whose answers are offered as files of lm-eval, which hold one task each."""
        return list(dict.fromkeys(row.name for row in self.tasks)) if self.answered else []

    def is_drawn(self, row: FigureRow) -> bool:
        return _is_drawn(row, is_of_shares=self.is_of_shares)


def figures_view(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> FiguresView:
    tasks = [row for task in summary.tasks for row in _task_rows(task)]
    # The group of a suite with one task says the same again.
    groups = [row for group in summary.groups if len(group.tasks) > 1 for row in _group_rows(group)]
    rows = [*groups, *tasks]
    is_of_shares = all(row.is_share for row in rows if row.is_first)
    ends = [end for row in rows for end in row.ends if _is_drawn(row, is_of_shares=is_of_shares)]
    is_positive = all(end is None or 0 <= end <= 1 for end in ends)
    return FiguresView(
        groups=groups,
        tasks=tasks,
        scale=Scale.around(ends, within=_SHARE if is_positive else None),
        is_of_shares=is_of_shares,
        timing=_timing_rows(summary.timing),
        answered=summary.answered,
        failed=summary.failed,
        unparsed=summary.unparsed,
        total=summary.total,
        prompt_tokens=summary.usage.prompt_tokens,
        completion_tokens=summary.usage.completion_tokens,
        cost=optional(summary, "cost"),
        currency=summary.price.currency,
        gpu_seconds=summary.gpu_seconds,
        reused=summary.reused_answers,
        problems=list(summary.problems),
        environment=dict(sorted(run.environment.items())),
    )


def _is_drawn(row: FigureRow, *, is_of_shares: bool) -> bool:
    return row.is_share if is_of_shares else row.is_first


def _task_rows(task: summary_pb2.TaskSummary) -> list[FigureRow]:
    notes = [
        choice_scoring(task.scoring_method) or "",
        f"{task.num_fewshot} shots" if task.num_fewshot else "",
    ]
    if task.is_stand_in:
        notes.append("rows are not the official split")
    note = " · ".join(note for note in notes if note)
    return [_row(task.task, figure, note, is_first=not i) for i, figure in enumerate(task.metrics)]


def _group_rows(group: summary_pb2.GroupSummary) -> list[FigureRow]:
    missing = f"without {', '.join(group.missing_tasks)}" if group.missing_tasks else ""
    note = " · ".join(part for part in (f"{len(group.tasks)} tasks", missing) if part)
    return [_row(group.group, figure, note, is_first=not i) for i, figure in enumerate(group.metrics)]


def _row(name: str, figure: summary_pb2.MetricFigure, note: str, *, is_first: bool) -> FigureRow:
    low, high = interval(figure) or (None, None)
    return FigureRow(
        name=name,
        metric=figure.metric,
        value=optional(figure, "mean"),
        low=low,
        high=high,
        n=figure.n,
        method=figure.interval_method,
        note=note if is_first else "",
        is_first=is_first,
    )


def _timing_rows(timing: summary_pb2.TimingSummary) -> list[TimingRow]:
    return [
        TimingRow(name, unit, each.n, each.mean, each.p50, each.p90, each.p95, each.p99)
        for field, name, unit in _TIMES
        if timing.HasField(field)  # type: ignore[arg-type]  # the names of its fields
        for each in (getattr(timing, field),)
    ]
