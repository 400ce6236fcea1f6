"""Errors about orders of rollouts."""

from services.common.errors import DomainError, ErrorKind
from services.scheduler.rollouts.tasks.errors import TaskError


class RolloutsNotFound(DomainError):
    """There is no order of rollouts {order_id}; perhaps its runs were deleted. List the orders there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "ROLLOUTS_NOT_FOUND"


class NoRolloutsOfRun(DomainError):
    """No order of rollouts submitted the run {run_id}. List the orders there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "ROLLOUTS_NOT_FOUND"


class TooManyBytes(TaskError):
    """The tasks have {bytes} bytes, over the {limit} of an order. Upload them, and order by tasks_digest."""
