"""Tasks that count several answers of a row say how many rollouts a run of them has."""

from collections.abc import Sequence
from dataclasses import replace

from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.suite import TaskDefinition


def with_repeats(order: RunOrder, tasks: Sequence[TaskDefinition]) -> RunOrder:
    """The order with the rollouts of its tasks, where it names none. Raises `InvalidParameter`."""
    most = max(tasks, key=lambda task: task.repeats, default=None)
    asked = replace(order, takes_repeats=False)
    if most is None or most.repeats == 1:
        return asked
    other = next((task for task in tasks if task.repeats != most.repeats), None)
    if other is not None:
        counted = f"Task {most.name} counts {most.repeats} answers of each row, {other.name} {other.repeats}."
        raise InvalidParameter(field="order.tasks", sentence=f"{counted} Order them in runs of their own.")
    if not order.takes_repeats and order.rollouts != most.repeats:
        counted = f"Task {most.name} counts {most.repeats} answers of each row, not {order.rollouts}."
        raise InvalidParameter(field="order.rollouts", sentence=f"{counted} Leave rollouts out.")
    return replace(asked, rollouts=most.repeats)
