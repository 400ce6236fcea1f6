"""Which task owns a sample number."""

import pytest

from tests.fakes.results.recorded_run import plan_of


@pytest.mark.parametrize(("sample", "task"), [(0, 0), (2, 0), (3, 2), (6, 2), (7, None), (-1, None)])
def test_a_number_belongs_to_the_task_whose_range_holds_it(sample: int, task: int | None) -> None:
    plan = plan_of([3, 0, 4])
    assert plan.task_index_of(sample) == task


def test_a_run_is_samples_times_rollouts() -> None:
    plan = plan_of([3, 4], rollouts=5)
    assert (plan.total, plan.end_sample) == (35, 7)
    assert plan_of([]).end_sample == 0


def test_tasks_are_found_by_name() -> None:
    plan = plan_of([1, 1])
    assert plan.task_index_named("t1") == 1
    assert plan.task_index_named("t2") is None
