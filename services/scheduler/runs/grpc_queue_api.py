"""QueueService and RequestCountService: the queue, and the limits that order it."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass, replace

import grpc

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import request_count_service_pb2 as request_count_pb2
from proctor.v1 import request_count_service_pb2_grpc as request_count_grpc
from proctor.values.names.user import LOCAL_USER
from proctor.values.priority import Priority
from proctor.wire.convert import Codec
from proctor.wire.enums import member_of, number_of
from services.common.clock import Clock
from services.common.errors import InvalidParameter
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import checked_page_size
from services.scheduler.audit.audit_record import Author, ObjectKind
from services.scheduler.audit.ports import ChangeList
from services.scheduler.audit.proto import change_to_proto
from services.scheduler.disks.disk_use import FullDisks
from services.scheduler.limits.change_limits import ChangeLimits
from services.scheduler.limits.ports import LimitStore
from services.scheduler.limits.queue_limits import LIMIT_NAMES, LimitChanges, QueueLimits
from services.scheduler.rate_limits.rate_meter import ProviderRate, RateLimitTracker, provider_rates
from services.scheduler.runs.admission.run_queue import UserRunCounts
from services.scheduler.runs.reads.list_runs import ListRuns
from services.scheduler.runs.reads.proto import brief_to_proto
from services.scheduler.streams.refused_streams import RefusedStreams
from services.scheduler.workers.proto import WORKER

# Some 32 years: more than any limit allows, and far within what `timedelta` holds.
_MAX_SECONDS = 10**9
_LIMITS = Codec(QueueLimits, queue_pb2.QueueLimits, unpaired={"highest_priorities", "max_reads_per_minute"})
_CHANGES = Codec(LimitChanges, queue_pb2.QueueLimits, unpaired={"highest_priorities", "reset"})
QUEUE_SERVICE_NAMES = (
    queue_pb2.DESCRIPTOR.services_by_name["QueueService"].full_name,
    request_count_pb2.DESCRIPTOR.services_by_name["RequestCountService"].full_name,
)
DEFAULT_PAGE_SIZE = 100
_USER_COUNTS = Codec(UserRunCounts, queue_pb2.UserRunCounts)
_RATE = Codec(ProviderRate, queue_pb2.ProviderRate)


def limits_to_proto(limits: QueueLimits) -> queue_pb2.QueueLimits:
    message = _LIMITS.to_proto(limits)
    for user, highest in sorted(limits.highest_priorities.items()):
        message.highest_priorities.add(user=user, highest=number_of(highest))
    return message


def changes_from_proto(request: queue_pb2.SetLimitsRequest) -> LimitChanges:
    for name in request.reset:
        if name not in LIMIT_NAMES:
            sentence = (
                f'reset names "{name}", but there is no such limit: there are {", ".join(LIMIT_NAMES)}.'
            )
            raise InvalidParameter(field="reset", sentence=sentence)
    limits = queue_pb2.QueueLimits()
    limits.CopyFrom(request.limits)
    # A time that Python cannot hold is refused like any other that is too long.
    for name in {"run_time_limit", "min_run_time"} & {field.name for field, _ in limits.ListFields()}:
        duration = getattr(limits, name)
        duration.seconds = min(max(duration.seconds, -_MAX_SECONDS), _MAX_SECONDS)
    return replace(
        _CHANGES.from_proto(limits),
        highest_priorities={each.user: _priority(each) for each in limits.highest_priorities},
        reset=frozenset(request.reset),
    )


def _priority(each: queue_pb2.UserPriority) -> Priority:
    highest = member_of(Priority, each.highest)
    if highest is None:
        known = ", ".join(Priority)
        sentence = f'The highest priority of user "{each.user}" is missing; it is one of {known}.'
        raise InvalidParameter(field="limits.highest_priorities", sentence=sentence)
    return highest


@dataclass(frozen=True, kw_only=True)
class GrpcQueueApi(queue_grpc.QueueServiceServicer, request_count_grpc.RequestCountServiceServicer):
    """The queue, and the limits that order it."""

    list_runs: ListRuns
    rates: RateLimitTracker
    change: ChangeLimits
    limits: LimitStore
    changes: ChangeList
    refused_streams: RefusedStreams
    full_disks: FullDisks
    clock: Clock

    def register(self, server: grpc.aio.Server) -> None:
        queue_grpc.add_QueueServiceServicer_to_server(self, server)
        request_count_grpc.add_RequestCountServiceServicer_to_server(self, server)

    async def GetQueue(
        self, request: queue_pb2.GetQueueRequest, context: RpcContext
    ) -> queue_pb2.GetQueueResponse:
        size = checked_page_size(request.page_size, DEFAULT_PAGE_SIZE)
        queue = await self.list_runs.show_queue(size, caller_of(context.invocation_metadata()))
        return queue_pb2.GetQueueResponse(
            running=[brief_to_proto(run) for run in queue.running],
            pending=[brief_to_proto(run) for run in queue.pending],
            pending_total=queue.pending_total,
            paused=[brief_to_proto(run) for run in queue.paused],
            workers=[WORKER.to_proto(worker) for worker in queue.workers],
            # Not those of the forecast, which may be older: a user who changed a limit reads it back at once.
            limits=limits_to_proto(await self.limits.limits()),
            users=[_USER_COUNTS.to_proto(each) for each in queue.users],
            rates=[_RATE.to_proto(rate) for rate in self._rates()],
            refused_streams=[
                queue_pb2.RefusedStream(name=name, reason=reason)
                for name, reason in sorted(self.refused_streams().items())
            ],
            full_disks=[
                queue_pb2.FullDisk(name=disk.name, used_share=disk.used_share, reason=disk.reason)
                for disk in self.full_disks()
            ],
        )

    def _rates(self) -> list[ProviderRate]:
        return provider_rates(self.rates, self.clock.monotonic(), self.clock.now())

    async def GetLimits(
        self, request: queue_pb2.GetLimitsRequest, context: RpcContext
    ) -> queue_pb2.GetLimitsResponse:
        limits = limits_to_proto(await self.limits.limits())
        latest = (await self.changes.page(1, None, kind=ObjectKind.LIMITS)).changes
        last_change = change_to_proto(latest[0]) if latest else None
        return queue_pb2.GetLimitsResponse(limits=limits, last_change=last_change)

    async def SetLimits(
        self, request: queue_pb2.SetLimitsRequest, context: RpcContext
    ) -> queue_pb2.SetLimitsResponse:
        author = Author(caller_of(context.invocation_metadata()).name, self.clock.now())
        limits = await self.change.change(changes_from_proto(request), author)
        return queue_pb2.SetLimitsResponse(limits=limits_to_proto(limits))

    async def CountRequest(
        self, request: request_count_pb2.CountRequestRequest, context: RpcContext
    ) -> request_count_pb2.CountRequestResponse:
        user, now = request.user or LOCAL_USER, self.clock.now()
        left = await self.limits.count_request(user, now, is_read=request.is_read)
        response = request_count_pb2.CountRequestResponse(remaining=left.remaining, limit=left.limit)
        response.resets_in.FromTimedelta(left.resets_in)
        return response
