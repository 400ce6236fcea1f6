"""Figures of any scores: nothing is raised, every number is finite, and an interval is around its mean.

`PROCTOR_PROPERTY_CASES` sets how many cases are drawn for each property.
"""

import math
import os
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.values.scoring import GroupMetric, TaskGroup
from services.results.statistics.columns import Numbers, PairColumns
from services.results.statistics.figure import Columns, Figure, figure_of
from services.results.statistics.metric_names import SCORE
from services.results.statistics.sample_scores import ScoreColumns, pass_at, pass_sizes
from services.results.summaries.group_figures import group_summary

CASES = int(os.environ.get("PROCTOR_PROPERTY_CASES", "150"))
# A hundred thousand cases take longer than any other test.
pytestmark = pytest.mark.timeout(600 + CASES // 20)
drawn = settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    derandomize="PROCTOR_PROPERTY_CASES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)

MEETING_ROUNDING = [
    0.1,
    0.8,
    2 / 3,
    1 / 3,
    0.0,
    1.0,
    -1.0,
    73.3,
    1e-300,
    5e-324,
    1e15,
    1e150,
    -1e200,
    1.7e308,
]
numbers = st.sampled_from(MEETING_ROUNDING) | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def keys(draw: st.DrawFn, rows: int) -> dict[str, Numbers | None]:
    """Samples and rollouts in the order of the table, and clusters of samples; or only rows."""
    if draw(st.booleans()):
        samples = np.sort(
            np.array(draw(st.lists(st.integers(0, 12), min_size=rows, max_size=rows)), np.int64)
        )
        first = np.searchsorted(samples, samples)
        rollouts: Numbers | None = np.arange(rows) - first
    else:
        samples, rollouts = np.arange(rows), None
    clusters = samples // draw(st.integers(1, 5)) if draw(st.booleans()) else None
    return {"samples": None if rollouts is None else samples, "rollouts": rollouts, "clusters": clusters}


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, Columns]:
    rows = draw(st.integers(0, 30))
    metric = draw(st.sampled_from(["acc", "reward", "bleu_max", "f1", "mcc", "pearson", "spearman"]))
    value = {"acc": st.sampled_from([0.0, 1.0]), "reward": st.floats(0, 1)}.get(metric, numbers)
    few = st.sampled_from(draw(st.lists(value, min_size=1, max_size=3)))
    listed = st.lists(few | value, min_size=rows, max_size=rows)
    if metric in ("f1", "mcc"):
        labels = st.lists(st.integers(-1, draw(st.integers(0, 4))), min_size=rows, max_size=rows)
        targets, predicted = (np.array(draw(labels), np.int64) for _ in range(2))
        return metric, PairColumns(targets, predicted, **draw(keys(rows)))
    if metric in ("pearson", "spearman"):
        return metric, PairColumns(np.array(draw(listed)), np.array(draw(listed)), **draw(keys(rows)))
    return metric, ScoreColumns(np.array(draw(listed)), **draw(keys(rows)))


@st.composite
def figures(draw: st.DrawFn) -> list[Figure]:
    """Of a task in one of its metrics, and pass@k where it has rollouts that are right or wrong."""
    metric, drawn_columns = draw(columns())
    average = draw(st.sampled_from(["binary", "macro", "micro", "weighted"])) if metric == "f1" else "binary"
    found = [figure_of(metric, drawn_columns, average)]
    if metric == "acc" and isinstance(drawn_columns, ScoreColumns) and drawn_columns.rollouts is not None:
        sizes = pass_sizes(int(drawn_columns.rollouts.max(initial=0)) + 1)
        found += [figure_of(f"pass@{k}", pass_at(k, drawn_columns.by_sample())) for k in sizes]
    return found


def assert_sound(figure: Figure) -> None:
    defined = [number for number in astuple(figure) if isinstance(number, float)]
    assert all(map(math.isfinite, defined)), figure
    ends = (figure.ci_low, figure.ci_high)
    assert (figure.interval_method == "") is (ends == (None, None)), figure
    errors = [one for one in (figure.std, figure.stderr, figure.within_std) if one is not None]
    assert all(error >= 0 for error in errors), figure
    if figure.ci_low is not None and figure.ci_high is not None and figure.mean is not None:
        assert figure.ci_low <= figure.ci_high
        if figure.interval_method in ("wilson", "student-t"):
            assert figure.ci_low <= figure.mean <= figure.ci_high, figure
        if figure.is_fraction:
            assert 0 <= figure.ci_low <= figure.mean + 1e-12, figure
            assert figure.mean - 1e-12 <= figure.ci_high <= 1, figure


@drawn
@given(found=figures())
def test_a_figure_of_any_scores_is_sound(found: list[Figure]) -> None:
    for figure in found:
        assert_sound(figure)


@drawn
@given(tasks=st.lists(figures(), min_size=1, max_size=4), is_weighted=st.booleans())
def test_a_group_of_any_tasks_is_sound(tasks: list[list[Figure]], *, is_weighted: bool) -> None:
    by_task = {f"t{index}": {"metric": found[-1]} for index, found in enumerate(tasks)}
    group = TaskGroup("suite", tuple(by_task), (GroupMetric("metric", is_weighted),))
    summary = group_summary(group, by_task)
    for name in ("metric", SCORE):
        assert_sound(summary.figures[name])
