"""What is made of things of a declared project stays in it."""

from dataclasses import replace

import pytest

from proctor.values.names.project import FIRST_DECLARED
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.project_of_order import in_project_of
from services.scheduler.runs.orders.run_order import RunOrder

ORDER = RunOrder("toy", "any/model")
DECLARED = FIRST_DECLARED + 1


def test_order_that_names_no_project_is_in_that_of_what_it_is_over() -> None:
    assert in_project_of(ORDER, DECLARED) == replace(ORDER, project_id=DECLARED)
    named = replace(ORDER, project_id=DECLARED)
    assert in_project_of(named, DECLARED) is named


def test_things_that_everybody_sees_may_be_used_in_any_project() -> None:
    for project_id in (0, 7, DECLARED):
        order = replace(ORDER, project_id=project_id)
        assert in_project_of(order, 7) is order


@pytest.mark.parametrize("project_id", [7, DECLARED + 1])
def test_order_takes_nothing_of_a_project_into_another_one(project_id: int) -> None:
    with pytest.raises(InvalidParameter) as refused:
        in_project_of(replace(ORDER, project_id=project_id), DECLARED)
    assert refused.value.facts["field"] == "order.project_id"
