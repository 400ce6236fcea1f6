"""The result of a closed run for leaderboards and histories: conditions, counts, figures over all tasks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from proctor.values.run import DEFAULT_MAX_FAILED_SHARE, RunState
from proctor.values.scoring import benchmark_group
from services.results.leaderboard.conditions import EvaluationConditions, conditions_of
from services.results.runs.conditions import IMPORTED_FROM, LIMIT, NONE, EvaluatedRun
from services.results.statistics.figure import Figure
from services.results.statistics.metric_names import SCORE, less_with_score
from services.results.summaries.run_summary import GroupSummary, RunSummary


@dataclass(frozen=True, slots=True)
class BenchmarkFigure:
    """A figure over so many tasks of a benchmark."""

    figure: Figure = field(default_factory=Figure)
    task_count: int = 0


# Metric to figure.
BenchmarkFigures = Mapping[str, BenchmarkFigure]


# Baseline to its figures.
BenchmarkBaselines = Mapping[str, BenchmarkFigures]


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """The result of a run on its benchmark.

    `failing_tasks`: those of which too large a share failed; what is left of them may be the easy part.
    `is_stopped`: once it was decided between it and another run, so its figures are of a number of samples
    that hung on what they say. `cost` is None without a price. `less_is_better`: the figures of which it is.
    `asks_no_model`: it is in no leaderboard, history or average, since its figures are no model's.
    """

    conditions: EvaluationConditions
    figures: BenchmarkFigures = field(default_factory=dict)
    answered: int = 0
    failed: int = 0
    unparsed: int = 0
    failing_tasks: tuple[str, ...] = ()
    dataset_name: str = ""
    max_failed_share: float = DEFAULT_MAX_FAILED_SHARE
    is_stopped: bool = False
    cost: float | None = None
    currency: str = ""
    less_is_better: tuple[str, ...] = ()
    asks_no_model: bool = False

    @property
    def headline(self) -> str:
        """The metric of its headline figure, which is the first."""
        return next(iter(self.figures), SCORE)

    @property
    def failing(self) -> str:
        """Why the run is never ranked; "" where it is whole."""
        if self.is_stopped:
            return "stopped early, when it was decided between it and another run"
        if not self.failing_tasks:
            return ""
        return f"more than {self.max_failed_share:.0%} failed: {', '.join(self.failing_tasks)}"

    @property
    def is_whole(self) -> bool:
        """Whether it is ranked without being asked for."""
        return not self.conditions.flaws and not self.failing

    @property
    def is_imported(self) -> bool:
        """Whether another tool asked and scored."""
        return self.conditions.value(IMPORTED_FROM) != NONE

    @property
    def is_limited(self) -> bool:
        """Complete except for its row limit, so comparable with runs of the same limit."""
        return self.conditions.flaws == (LIMIT,) and not self.failing

    def worth(self, metric: str) -> float:
        """By which runs are ranked: the figure, or its negative where less is better; undefined is least."""
        mean = self.mean(metric)
        if mean is None:
            return -math.inf
        return -mean if metric in self.less_is_better else mean

    def mean(self, metric: str) -> float | None:
        """None where it has no such figure."""
        figure = self.figures.get(metric)
        return figure.figure.mean if figure else None

    @property
    def unparsed_rate(self) -> float | None:
        return self.unparsed / self.answered if self.answered else None


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """A run as it was last closed."""

    run_id: str
    benchmark: str
    model: str
    project_id: int
    state: RunState | None
    closed_at: datetime
    result: BenchmarkResult


def benchmark_result(run: EvaluatedRun, summary: RunSummary) -> BenchmarkResult:
    plan = run.plan
    by_task = {task.task: task.figures for task in summary.tasks}
    benchmark = benchmark_group(summary.groups)
    figures = benchmark_figures(benchmark, by_task) if benchmark else {}
    mains = [next(iter(each), "") for each in by_task.values()]
    less = less_with_score(mains, plan.less_is_better) & figures.keys()
    failing = tuple(task.task for task in summary.tasks if task.failed > plan.max_failed_share * task.total)
    return BenchmarkResult(
        conditions_of(run),
        figures,
        summary.answered,
        summary.failed,
        summary.unparsed,
        failing,
        plan.facts.dataset_name,
        plan.max_failed_share,
        summary.decision is not None,
        summary.cost,
        summary.price.currency if summary.price else "",
        tuple(sorted(less)),
        plan.asks_no_model,
    )


def benchmark_figures(
    benchmark: GroupSummary, by_task: Mapping[str, Mapping[str, Figure]]
) -> BenchmarkFigures:
    """The figures of a benchmark, each with the number of tasks that have the metric."""
    having = {
        metric: sum(metric == SCORE or metric in by_task[task] for task in benchmark.tasks)
        for metric in benchmark.figures
    }
    return {metric: BenchmarkFigure(figure, having[metric]) for metric, figure in benchmark.figures.items()}
