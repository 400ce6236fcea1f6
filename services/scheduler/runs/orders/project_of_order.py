"""The project of an order: what is made of things of a declared project stays in it."""

from dataclasses import replace

from proctor.values.names.project import is_declared
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.run_order import RunOrder


def in_project_of(order: RunOrder, project_id: int) -> RunOrder:
    """The order over something of a project: where it names none, that one. Raises `InvalidParameter`."""
    if not is_declared(project_id) or order.project_id == project_id:
        return order
    if order.project_id:
        sentence = f"What the run is over belongs to project {project_id}: order it there, or name none."
        raise InvalidParameter(field="order.project_id", sentence=sentence)
    return replace(order, project_id=project_id)
