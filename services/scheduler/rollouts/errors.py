"""Errors about orders of rollouts."""

from services.common.errors import DomainError, ErrorKind
from services.scheduler.rollouts.tasks.errors import TaskError


class RolloutsOrderNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="ROLLOUTS_ORDER_NOT_FOUND"):
    """There is no order of rollouts {order_id}; perhaps its runs were deleted. List the orders there are."""


class RolloutsOrderOfRunNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="ROLLOUTS_ORDER_NOT_FOUND"):
    """No order of rollouts submitted the run {run_id}. List the orders there are."""


class TooManyBytes(TaskError):
    """The tasks have {bytes} bytes, over the {limit} of an order. Upload them, and order by tasks_digest."""
