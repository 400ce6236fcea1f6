"""The project of an order: what is made of things of a declared project stays in it."""

from dataclasses import replace

from proctor.values.names.project import is_declared
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.run_order import RunOrder


def in_project_of(order: RunOrder, project_id: int) -> RunOrder:
    """The order over something of a project: where it names none, that one. Raises `InvalidParameter`."""
    named = project_over(order.project_id, project_id, "order.project_id")
    return order if named == order.project_id else replace(order, project_id=named)


def project_over(named: int, project_id: int, field: str) -> int:
    """The project of what is made over something of `project_id`; `field` names one, or 0.

    Raises `InvalidParameter`.
    """
    if not is_declared(project_id) or named == project_id:
        return named
    if named:
        sentence = f"What the run is over belongs to project {project_id}: order it there, or name none."
        raise InvalidParameter(field=field, sentence=sentence)
    return project_id
