"""How many rollouts an order has whose tasks count several answers of a row."""

import pytest

from proctor.v1 import run_pb2
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.proto import order_from_proto
from services.scheduler.runs.orders.repeated_tasks import with_repeats
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.suite import TaskDefinition
from tests.fakes.suites.suite_documents import suite_of

TEXT = """\
task: votes
version: "1"
dataset: {id: org/words, split: test}
output_type: generate_until
doc_to_text: text
doc_to_target: word
repeats: 8
filter_list: [{name: vote, filter: [{function: majority_vote}]}]
metric_list: [{metric: exact_match}]
"""
[VOTES] = suite_of(TEXT).tasks
[ONCE] = suite_of(TEXT.replace("votes", "once").replace("repeats: 8", "repeats: 1")).tasks


def ordered(rollouts: int | None = None) -> RunOrder:
    return order_from_proto(run_pb2.RunOrder(suite="votes", model="openai/fake", rollouts=rollouts))


@pytest.mark.parametrize(
    ("order", "tasks", "rollouts"),
    [
        (ordered(), [VOTES], 8),
        (ordered(rollouts=8), [VOTES], 8),
        (ordered(), [ONCE], 1),
        (ordered(rollouts=3), [ONCE], 3),
        (ordered(), [], 1),
    ],
)
def test_an_order_that_names_no_rollouts_has_those_of_its_tasks(
    order: RunOrder, tasks: list[TaskDefinition], rollouts: int
) -> None:
    asked = with_repeats(order, tasks)
    assert (asked.rollouts, asked.takes_repeats) == (rollouts, False)


@pytest.mark.parametrize(
    ("order", "tasks", "field", "sentence"),
    [
        (
            ordered(rollouts=1),
            [VOTES],
            "order.rollouts",
            "Task votes counts 8 answers of each row, not 1. Leave rollouts out.",
        ),
        (
            ordered(),
            [ONCE, VOTES],
            "order.tasks",
            "Task votes counts 8 answers of each row, once 1. Order them in runs of their own.",
        ),
    ],
)
def test_an_order_of_another_number_is_refused(
    order: RunOrder, tasks: list[TaskDefinition], field: str, sentence: str
) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        with_repeats(order, tasks)
    assert (refusal.value.facts["field"], refusal.value.message) == (field, sentence)
