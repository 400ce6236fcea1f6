"""QueueService and RequestCountService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import queue_service_pb2 as messages
from proctor.v1 import queue_service_pb2_grpc, request_count_service_pb2_grpc
from proctor.v1 import request_count_service_pb2 as count_messages
from proctor.wire.convert import Codec
from services.common.clock import Clock
from services.scheduler.requests import DEFAULT_USER, checked_page_size
from services.scheduler.runs.admission.run_queue import UserRunCounts
from services.scheduler.runs.limits.change_limits import ChangeLimits
from services.scheduler.runs.limits.proto import changes_from_proto, limits_to_proto
from services.scheduler.runs.limits.queue_limits import LimitStore
from services.scheduler.runs.reads.proto import brief_to_proto
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.workers.proto import WORKER

SERVICE_NAMES = (
    messages.DESCRIPTOR.services_by_name["QueueService"].full_name,
    count_messages.DESCRIPTOR.services_by_name["RequestCountService"].full_name,
)

Context = grpc.aio.ServicerContext[object, object]

DEFAULT_PAGE_SIZE = 100


_USER_COUNTS = Codec(UserRunCounts, messages.UserRunCounts)


@dataclass(frozen=True)
class GrpcQueueApi(
    queue_service_pb2_grpc.QueueServiceServicer, request_count_service_pb2_grpc.RequestCountServiceServicer
):
    """The queue, and the limits that order it."""

    show: ShowRun
    change: ChangeLimits
    limits: LimitStore
    clock: Clock

    def register(self, server: grpc.aio.Server) -> None:
        queue_service_pb2_grpc.add_QueueServiceServicer_to_server(self, server)
        request_count_service_pb2_grpc.add_RequestCountServiceServicer_to_server(self, server)

    async def GetQueue(
        self, request: messages.GetQueueRequest, context: Context
    ) -> messages.GetQueueResponse:
        queue = await self.show.queue(checked_page_size(request.page_size, DEFAULT_PAGE_SIZE))
        return messages.GetQueueResponse(
            running=[brief_to_proto(run) for run in queue.running],
            waiting=[brief_to_proto(run) for run in queue.waiting],
            waiting_total=queue.waiting_total,
            paused=[brief_to_proto(run) for run in queue.paused],
            workers=[WORKER.to_proto(worker) for worker in queue.workers],
            limits=limits_to_proto(queue.limits),
            users=[_USER_COUNTS.to_proto(each) for each in queue.users],
        )

    async def GetLimits(
        self, request: messages.GetLimitsRequest, context: Context
    ) -> messages.GetLimitsResponse:
        return messages.GetLimitsResponse(limits=limits_to_proto(await self.limits.limits()))

    async def SetLimits(
        self, request: messages.SetLimitsRequest, context: Context
    ) -> messages.SetLimitsResponse:
        limits = await self.change.change(changes_from_proto(request))
        return messages.SetLimitsResponse(limits=limits_to_proto(limits))

    async def CountRequest(
        self, request: count_messages.CountRequestRequest, context: Context
    ) -> count_messages.CountRequestResponse:
        left = await self.limits.count_request(request.user or DEFAULT_USER, self.clock.now())
        return count_messages.CountRequestResponse(remaining=left)
