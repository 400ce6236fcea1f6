"""The queue over HTTP: who runs, who waits and why; and the limits, to see and to change."""

from typing import Annotated

from fastapi import APIRouter, Query

from services.gateway.api.queue.schemas import (
    LimitChanges,
    Limits,
    Queue,
    shown_limits,
    shown_queue,
    wanted_limits,
)
from services.gateway.backends.scheduler import QueueBackend
from services.gateway.errors.http_problem import problems
from services.gateway.paths import QUEUE

MostJobs = Annotated[int, Query(ge=1, le=500, description="Most waiting and most paused jobs to list")]


class QueueApi:
    """The handlers, with what they ask."""

    def __init__(self, queue: QueueBackend) -> None:
        self._queue = queue

    def router(self) -> APIRouter:
        router = APIRouter(prefix=QUEUE, tags=["queue"])
        router.get("", responses=problems(422, 503), summary="What runs, what waits and why")(self.queue)
        router.get("/limits", responses=problems(503), summary="The limits that hold now")(self.limits)
        router.patch(
            "/limits", responses=problems(422, 503), summary="Change limits at once, without a restart"
        )(self.change_limits)
        return router

    async def queue(self, limit: MostJobs = 100) -> Queue:
        return shown_queue(await self._queue.get_queue(limit))

    async def limits(self) -> Limits:
        return shown_limits(await self._queue.get_limits())

    async def change_limits(self, changes: LimitChanges) -> Limits:
        return shown_limits(await self._queue.set_limits(wanted_limits(changes)))
