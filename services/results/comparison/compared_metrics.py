"""Which metrics of which tasks are compared, and which tasks make up the benchmark's figure of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.metrics.names import full_name
from proctor.values.scoring import benchmark_group
from services.common.checked_fields import invalid_field
from services.results.comparison.errors import NothingToCompare
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.statistics.metric_names import (
    SCORE,
    UnknownMetric,
    headline_of,
    less_with_score,
    scored_tasks,
)


@dataclass(frozen=True, slots=True)
class BenchmarkMetric:
    """A figure of the benchmark: the metric that each task brings to it, and how tasks are weighted."""

    metric: str
    by_task: Mapping[str, str]
    is_weighted_by_size: bool
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class ComparedMetrics:
    """`by_task`: what is compared of each task, its main metric first."""

    by_task: Mapping[str, Sequence[ScoredMetric]]
    of_benchmark: Sequence[BenchmarkMetric]


def main_metrics(plans: Sequence[RunPlan], tasks: Sequence[str] = ()) -> ComparedMetrics:
    """The main metric of each task, and the headline figure of the benchmark."""
    shared = _shared_metrics(plans, tasks)
    benchmark = benchmark_group(plans[0].groups)
    names = [[scored.key for scored in metrics] for metrics in shared.values()]
    headline = headline_of(benchmark.metrics if benchmark else (), names)
    by_task = {
        task: [scored for index, scored in enumerate(metrics) if index == 0 or scored.key == headline]
        for task, metrics in shared.items()
    }
    return _compared(plans[0], by_task, [headline])


def named_metrics(
    plans: Sequence[RunPlan], tasks: Sequence[str], by_task: Mapping[str, str]
) -> ComparedMetrics:
    """The metric that is named for a task, and the main one of every other; none of the benchmark.

    Raises InvalidParameter for a task that not all runs have, UnknownMetric.
    """
    shared = _shared_metrics(plans, tasks)
    for task in by_task:
        if task not in shared:
            raise invalid_field("metrics", f"{task!r} is not a task of every run: {', '.join(shared)}")
    chosen = {task: _named_first(metrics, by_task.get(task, "")) for task, metrics in shared.items()}
    return ComparedMetrics(chosen, ())


def _named_first(metrics: Sequence[ScoredMetric], word: str) -> list[ScoredMetric]:
    """One metric at most. Raises UnknownMetric."""
    name = full_name(word, [name for scored in metrics for name in scored.names])
    found = [scored for scored in metrics if name in ("", *scored.names)]
    if name and not found:
        raise UnknownMetric(metric=name, supported=", ".join(scored.key for scored in metrics))
    return found[:1]


def chosen_metrics(plans: Sequence[RunPlan], tasks: Sequence[str], words: Sequence[str]) -> ComparedMetrics:
    """The metrics that are named, of the tasks that have them. Raises UnknownMetric."""
    shared = _shared_metrics(plans, tasks)
    had = [name for metrics in shared.values() for scored in metrics for name in scored.names]
    names = list(dict.fromkeys(full_name(word, had) for word in words))
    for name in names:
        if name != SCORE and not any(name in scored.names for one in shared.values() for scored in one):
            known = dict.fromkeys(scored.key for one in shared.values() for scored in one)
            raise UnknownMetric(metric=name, supported=", ".join([*known, SCORE]))
    by_task = {
        task: [
            scored
            for index, scored in enumerate(metrics)
            if (SCORE in names and index == 0) or any(name in scored.names for name in names)
        ]
        for task, metrics in shared.items()
    }
    return _compared(plans[0], by_task, names)


def all_metrics(plans: Sequence[RunPlan], *, are_alike: bool = False) -> ComparedMetrics:
    """Every metric that the runs share, and the score.

    `are_alike`: of runs over data sets only those that were scored by the same options.
    """
    shared = _shared_metrics(plans, ())
    if are_alike and plans[0].facts.is_of_dataset:
        shared = {
            task: [scored for scored in metrics if _is_alike(plans, task, scored)]
            for task, metrics in shared.items()
        }
    names = dict.fromkeys(scored.key for one in shared.values() for scored in one)
    return _compared(plans[0], shared, [*names, SCORE])


def _compared(
    plan: RunPlan, by_task: Mapping[str, Sequence[ScoredMetric]], names: Sequence[str]
) -> ComparedMetrics:
    keys = dict.fromkeys(scored.key for one in by_task.values() for scored in one)
    wanted = [key for key in keys if any(key == name or key.startswith(f"{name},") for name in names)]
    wanted += [SCORE] if SCORE in names else []
    return ComparedMetrics(by_task, [_benchmark_metric(plan, metric, by_task) for metric in wanted])


def _benchmark_metric(
    plan: RunPlan, metric: str, by_task: Mapping[str, Sequence[ScoredMetric]]
) -> BenchmarkMetric:
    is_less = plan.less_is_better
    if metric == SCORE:
        mains = {task: metrics[0].key for task, metrics in by_task.items() if metrics}
        scored = {task: mains[task] for task in scored_tasks(mains, is_less)}
        is_less_better = SCORE in less_with_score(mains.values(), is_less)
        return BenchmarkMetric(SCORE, scored, is_weighted_by_size=False, less_is_better=is_less_better)
    having = {
        task: metric for task, metrics in by_task.items() if metric in [scored.key for scored in metrics]
    }
    benchmark = benchmark_group(plan.groups)
    uses = benchmark.metrics if benchmark else ()
    rule = [use.is_weighted_by_size for use in uses if use.metric in (metric, metric.partition(",")[0])]
    is_weighted = rule[0] if rule else True
    return BenchmarkMetric(metric, having, is_weighted_by_size=is_weighted, less_is_better=metric in is_less)


def _shared_metrics(plans: Sequence[RunPlan], tasks: Sequence[str]) -> dict[str, list[ScoredMetric]]:
    """Metrics by task that all runs have: those that all of them are scored by, in the order of the
    first run.

    Raises NothingToCompare where there is none.
    """
    shared: dict[str, list[ScoredMetric]] = {}
    for task in shared_tasks(plans, tasks):
        own, *others = (_metrics_of(plan, task) for plan in plans)
        shared[task] = [scored for scored in own if all(_is_among(scored, other) for other in others)]
    if shared and not any(shared.values()):
        had = [
            _words([scored.key for task in shared for scored in _metrics_of(plan, task)]) for plan in plans
        ]
        raise NothingToCompare(metrics="; ".join(dict.fromkeys(had)))
    return shared


def _is_among(scored: ScoredMetric, others: Sequence[ScoredMetric]) -> bool:
    """By its key; that of a log may be a mean of scores where ours is made of all answers together."""
    return any(one.key == scored.key and one.has_numbers == scored.has_numbers for one in others)


def _words(keys: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(keys)) or "none"


def shared_tasks(plans: Sequence[RunPlan], tasks: Iterable[str]) -> list[str]:
    """The requested tasks that all runs have, in the order of the first run. Raises InvalidParameter."""
    names = [[task.task for task in plan.tasks] for plan in plans]
    shared = [task for task in names[0] if all(task in others for others in names)]
    asked = list(tasks)
    for task in asked:
        if task not in shared:
            raise invalid_field("tasks", f"{task!r} is not a task of every run: {', '.join(shared)}")
    return [task for task in shared if not asked or task in asked]


def task_index(plan: RunPlan, task: str) -> int:
    """Position of a task in the plan of a run that has it."""
    index = plan.task_index_named(task)
    assert index is not None
    return index


def task_named(plan: RunPlan, task: str) -> PlannedTask:
    return plan.tasks[task_index(plan, task)]


def _metrics_of(plan: RunPlan, task: str) -> Sequence[ScoredMetric]:
    """Without figures of all values together: answers to one sample have no difference then."""
    scored = plan.scorings[task_index(plan, task)].scored_metrics
    return [one for one in scored if not one.metric.is_of_stored_values]


def options_of(plan: RunPlan, task: str, metric: str) -> str:
    """The options as JSON text; "" for none."""
    uses = task_named(plan, task).scoring.metrics
    return next(use.options_json for use in uses if use.name == metric)


def _is_alike(plans: Sequence[RunPlan], task: str, scored: ScoredMetric) -> bool:
    return len({options_of(plan, task, scored.metric.name) for plan in plans}) == 1
