"""Figures of a group of tasks, aggregated as lm-evaluation-harness aggregates its groups."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence

from proctor.values.scoring import GroupMetric, TaskGroup
from services.results.statistics.figure import Figure, only_finite, with_interval, within_bounds
from services.results.statistics.metric_names import SCORE, headline_of, scored_tasks
from services.results.statistics.stratified_interval import stratified_interval, stratum
from services.results.summaries.run_summary import GroupSummary

# Task, then metric; the first metric of a task is its main one.
TaskFigures = Mapping[str, Mapping[str, Figure]]


def group_summary(
    group: TaskGroup, by_task: TaskFigures, less_is_better: Container[str] = frozenset()
) -> GroupSummary:
    """The figures of a group over those of its tasks that were part of the run."""
    tasks = tuple(task for task in group.tasks if task in by_task)
    figures = [by_task[task] for task in tasks]
    summed_up = {
        name: _summed_up([one[name] for one in figures if name in one], is_weighted=use.is_weighted_by_size)
        for use in group.metrics or _all_metrics(figures)
        for name in _names_of(use.metric, figures)
    }
    mains = {task: next(iter(by_task[task]), "") for task in tasks}
    main = [by_task[task].get(mains[task], Figure()) for task in scored_tasks(mains, less_is_better)]
    # A group without scored tasks has no score at all: an undefined one would say that some task was scored.
    if any(figures):
        summed_up[SCORE] = _summed_up(main, is_weighted=False)
    missing = tuple(task for task in group.tasks if task not in by_task)
    headline = headline_of(group.metrics, figures)
    in_order = sorted(summed_up, key=lambda name: name != headline)
    return GroupSummary(group.group, tasks, {name: summed_up[name] for name in in_order}, missing)


def _all_metrics(figures: Iterable[Mapping[str, Figure]]) -> list[GroupMetric]:
    return [GroupMetric(name) for name in dict.fromkeys(name for one in figures for name in one)]


def _names_of(metric: str, figures: Iterable[Mapping[str, Figure]]) -> list[str]:
    """A metric read through several filters has a name for each: `exact_match,strict-match`."""
    names = dict.fromkeys(name for one in figures for name in one)
    return [name for name in names if name == metric or name.startswith(f"{metric},")]


def _summed_up(figures: Sequence[Figure], *, is_weighted: bool) -> Figure:
    """Undefined where one of them is: a mean over the others would be that of another group."""
    # Not through the formulas: one task's own error would come back rounded.
    if len(figures) == 1:
        return figures[0]
    sizes = [figure.n for figure in figures]
    means = _defined(figure.mean for figure in figures)
    if means is None or not all(sizes):
        return Figure(n=sum(sizes))
    counts = sizes if is_weighted else [1] * len(sizes)
    mean = sum(mean * count for mean, count in zip(means, counts, strict=True)) / sum(counts)
    error_of = _pooled_error if is_weighted else _unweighted_error
    std = error_of([figure.std for figure in figures], sizes)
    stderr = error_of([figure.stderr for figure in figures], sizes)
    is_fraction = all(figure.is_fraction for figure in figures)
    whole = Figure(mean, std, stderr, n=sum(sizes), is_fraction=is_fraction)
    return only_finite(_with_interval(whole, figures, [count / sum(counts) for count in counts]))


def _with_interval(whole: Figure, figures: Sequence[Figure], weights: Sequence[float]) -> Figure:
    """Undefined where that of one task is."""
    strata = [stratum(figure, weight) for figure, weight in zip(figures, weights, strict=True)]
    known = [one for one in strata if one is not None]
    if len(known) < len(strata):
        return whole
    return within_bounds(with_interval(whole, stratified_interval(known)))


def _pooled_error(errors: Sequence[float | None], sizes: Sequence[int]) -> float | None:
    """The error of a mean weighted by size, from the pooled variance of the samples.

    Σ (n−1)·n·se² / (Σn − k) / Σn.
    """
    numbers, degrees_of_freedom = _defined(errors), sum(sizes) - len(sizes)
    if numbers is None or degrees_of_freedom == 0:
        return None
    # Roots and hypot instead of squares: no overflow where scores are large.
    roots = [math.sqrt((size - 1) * size) * error for size, error in zip(sizes, numbers, strict=True)]
    return math.hypot(*roots) / math.sqrt(degrees_of_freedom * sum(sizes))


def _unweighted_error(errors: Sequence[float | None], sizes: Sequence[int]) -> float | None:
    """The error of the plain mean of k independent figures: √(Σ se²) / k."""
    numbers = _defined(errors)
    return None if numbers is None else math.hypot(*numbers) / len(sizes)


def _defined(values: Iterable[float | None]) -> list[float] | None:
    """All values, or None where one is undefined."""
    found = list(values)
    numbers = [value for value in found if value is not None]
    return numbers if len(numbers) == len(found) else None
