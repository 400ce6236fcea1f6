"""The samples of an order, by the tasks that earlier runs had."""

from dataclasses import replace

import pytest

from services.scheduler.runs.admission.planned_rows import PlannedRows, expected_samples
from services.scheduler.runs.orders.run_order import RunOrder

ORDER = RunOrder("toy", "openai/fake")
WHOLE = PlannedRows((), None, {"one": 60, "two": 40})
CUT = PlannedRows((), 30, {"one": 30, "two": 30})
OF_ONE = PlannedRows(("one",), None, {"one": 60})


@pytest.mark.parametrize(
    ("limit", "planned", "samples"),
    [
        (None, [WHOLE], 100),
        (50, [WHOLE], 90),
        (50, [CUT, WHOLE], 90),
        (50, [CUT], 100),
        (10, [CUT], 20),
        (None, [CUT], None),
        # The limit was not reached in one of the two tasks.
        (80, [PlannedRows((), 50, {"one": 50, "two": 40})], 120),
        (10, [OF_ONE], None),
        (10, [], None),
    ],
)
def test_an_order_of_all_tasks_has_those_that_a_run_had(
    limit: int | None, planned: list[PlannedRows], samples: int | None
) -> None:
    assert expected_samples(replace(ORDER, limit=limit), planned) == samples


@pytest.mark.parametrize(
    ("limit", "planned", "samples"),
    [(None, [OF_ONE], 60), (80, [OF_ONE], 60), (80, [], 80), (None, [], None), (None, [CUT], None)],
)
def test_an_order_of_one_task_has_its_rows_and_at_most_its_limit(
    limit: int | None, planned: list[PlannedRows], samples: int | None
) -> None:
    assert expected_samples(replace(ORDER, tasks=("one",), limit=limit), planned) == samples
