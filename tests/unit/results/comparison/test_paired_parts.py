"""Comparisons of any size are made in parts, which together hold each sample once."""

from collections.abc import Sequence

import pytest

from services.results.comparison.ports import FlipQuery
from services.results.comparison.postgres import flip_ranges, parts_of
from services.results.runs.run_plan import PlannedTask, RunPlan
from tests.fakes.results.recorded_run import CHOICE_SCORING

ALL = range(2**31 - 1)


def plan(*tasks: tuple[str, int, int], rollouts: int = 1) -> RunPlan:
    """Tasks as the name of their sample set, their first sample and how many they have."""
    planned = [
        PlannedTask(f"t{index}", sample_set, first, count, CHOICE_SCORING)
        for index, (sample_set, first, count) in enumerate(tasks)
    ]
    return RunPlan("run", tuple(planned), rollouts)


def shown(first: RunPlan, second: RunPlan, tasks: Sequence[str], most: int) -> list[tuple[object, ...]]:
    return [
        (list(one.tasks), one.first, one.second, one.positions)
        for one in parts_of(first, second, tasks, most)
    ]


def test_small_tasks_are_read_together() -> None:
    run = plan(("a", 0, 4), ("b", 4, 4), ("c", 8, 4))
    assert shown(run, run, ["t0", "t1", "t2"], 8) == [
        (["t0", "t1"], range(8), range(8), ALL),
        (["t2"], range(8, 12), range(8, 12), ALL),
    ]


def test_a_large_task_is_cut_by_the_positions_of_its_samples() -> None:
    first, second = plan(("a", 0, 1), ("b", 1, 5)), plan(("a", 5, 1), ("b", 0, 5))
    assert shown(first, second, ["t0", "t1"], 2) == [
        (["t1"], range(1, 3), range(2), range(2)),
        (["t1"], range(3, 5), range(2, 4), range(2, 4)),
        (["t1"], range(5, 6), range(4, 5), range(4, 5)),
        (["t0"], range(1), range(5, 6), ALL),
    ]


def test_outcomes_are_counted_by_the_run_with_more_rollouts() -> None:
    first, second = plan(("a", 0, 4)), plan(("a", 0, 4), rollouts=3)
    assert [one.positions for one in parts_of(first, second, ["t0"], 6)] == [range(2), range(2, 4)]


def test_samples_of_unlike_sets_are_paired_in_one_part() -> None:
    assert shown(plan(("a", 0, 9)), plan(("b", 0, 7)), ["t0"], 2) == [(["t0"], range(9), range(7), ALL)]


def test_no_task_has_no_part() -> None:
    assert parts_of(plan(), plan(), [], 2) == []


@pytest.mark.parametrize(
    ("second_set", "expected"),
    [
        ("a", [(range(12, 14), range(2, 4)), (range(14, 16), range(4, 6)), (range(16, 17), range(6, 7))]),
        ("b", [(range(12, 17), range(7))]),
    ],
)
def test_flips_are_looked_for_behind_a_sample(second_set: str, expected: list[tuple[range, range]]) -> None:
    [one], [other] = plan(("a", 10, 7)).tasks, plan((second_set, 0, 7)).tasks
    query = FlipQuery(("first", "second"), (one, other), 2, "acc", 11, 50)
    assert list(flip_ranges(query, 4)) == expected
