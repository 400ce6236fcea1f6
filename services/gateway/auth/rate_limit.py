"""The request limit of users, counted by the scheduler for all replicas of the gateway."""

from proctor.v1.request_count_service_pb2 import CountRequestRequest
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends.backends import Scheduler

log = get_logger()

_TIMEOUT_SECONDS = 1.0


class RequestLimit:
    """Counts requests of users."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def count(self, user: str) -> None:
        """Raises `TOO_MANY_REQUESTS` above the limit. While the scheduler is away, requests pass."""
        try:
            await self._scheduler.request_counts.CountRequest(
                CountRequestRequest(user=user), timeout=_TIMEOUT_SECONDS
            )
        except DomainError as error:
            if error.kind is ErrorKind.EXHAUSTED:
                raise
            log.info("request not counted", user=user, reason=error.reason)
