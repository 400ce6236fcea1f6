"""ScheduleService: converts, changes or reads, converts."""

# ruff: noqa: N802 - names are those of the generated service

from dataclasses import dataclass
from uuid import UUID, uuid4, uuid5

import grpc

from proctor.v1 import schedule_service_pb2 as schedule_pb2
from proctor.v1 import schedule_service_pb2_grpc as schedule_grpc
from proctor.values.names.user import LOCAL_USER
from proctor.wire.convert import Codec
from services.common.checked_fields import checked_text, refuse
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import number_token, read_number_token
from services.common.requests.request_fields import checked_page_size, checked_request_id, project_problem
from services.scheduler.runs.orders.proto import ORDER, gate_from_proto, order_from_proto
from services.scheduler.runs.reads.proto import LABELS
from services.scheduler.schedules.change_schedule import ChangeSchedule, WantedSchedule
from services.scheduler.schedules.cron_times import CronTimes
from services.scheduler.schedules.errors import ScheduleNotFound
from services.scheduler.schedules.ports import ScheduleStore
from services.scheduler.schedules.schedule import Firing, Schedule, ScheduleId

SERVICE_NAME = schedule_pb2.DESCRIPTOR.services_by_name["ScheduleService"].full_name
_LIST = "schedules"
_DEFAULT_PAGE_SIZE = 100
_SCHEDULE = Codec(Schedule, schedule_pb2.Schedule, nested=(ORDER,), unpaired={"next_due_at"})
_FIRING = Codec(Firing, schedule_pb2.ScheduleFiring)


def _shown(schedule: Schedule) -> schedule_pb2.Schedule:
    message = _SCHEDULE.to_proto(schedule)
    if schedule.paused_at is None:
        message.next_due_at.FromDatetime(schedule.next_due_at)
    return message


def _schedule_id(text: str) -> ScheduleId:
    try:
        return ScheduleId(str(UUID(text)))
    except ValueError as error:
        raise ScheduleNotFound(schedule_id=text) from error


@dataclass(frozen=True, kw_only=True)
class GrpcScheduleApi(schedule_grpc.ScheduleServiceServicer):
    change: ChangeSchedule
    schedules: ScheduleStore

    def register(self, server: grpc.aio.Server) -> None:
        schedule_grpc.add_ScheduleServiceServicer_to_server(self, server)

    async def AddSchedule(
        self,
        request: schedule_pb2.AddScheduleRequest,
        context: RpcContext,  # noqa: ARG002  # the contract's
    ) -> schedule_pb2.AddScheduleResponse:
        user = request.user or LOCAL_USER
        request_id = checked_request_id(request.request_id) or str(uuid4())
        wanted = WantedSchedule(
            # Request ids are unique per user only.
            schedule_id=ScheduleId(str(uuid5(UUID(request_id), f"schedule of {user}"))),
            times=CronTimes(request.cron, request.time_zone or "UTC"),
            order=order_from_proto(request.order),
            user=user,
            labels=LABELS.from_proto(request.labels),
            gate=gate_from_proto(request.gate) if request.HasField("gate") else None,
        )
        return schedule_pb2.AddScheduleResponse(schedule=_shown(await self.change.add(wanted)))

    async def ListSchedules(
        self,
        request: schedule_pb2.ListSchedulesRequest,
        context: RpcContext,  # noqa: ARG002  # the contract's
    ) -> schedule_pb2.ListSchedulesResponse:
        size = checked_page_size(request.page_size, _DEFAULT_PAGE_SIZE)
        refuse(project_problem(request.project_id))
        page = await self.schedules.page(
            size,
            read_number_token(_LIST, request.page_token),
            checked_text("user", request.user),
            request.project_id if request.HasField("project_id") else None,
        )
        return schedule_pb2.ListSchedulesResponse(
            schedules=[_shown(each) for each in page.schedules],
            next_page_token="" if page.last is None else number_token(_LIST, page.last),
        )

    async def GetSchedule(
        self,
        request: schedule_pb2.GetScheduleRequest,
        context: RpcContext,  # noqa: ARG002  # the contract's
    ) -> schedule_pb2.GetScheduleResponse:
        schedule = await self.schedules.get(_schedule_id(request.schedule_id))
        firings = await self.schedules.firings(schedule.schedule_id)
        return schedule_pb2.GetScheduleResponse(
            schedule=_shown(schedule), firings=[_FIRING.to_proto(each) for each in firings]
        )

    async def PauseSchedule(
        self, request: schedule_pb2.PauseScheduleRequest, context: RpcContext
    ) -> schedule_pb2.PauseScheduleResponse:
        caller = caller_of(context.invocation_metadata())
        paused = await self.change.pause(_schedule_id(request.schedule_id), caller)
        return schedule_pb2.PauseScheduleResponse(schedule=_shown(paused))

    async def ResumeSchedule(
        self, request: schedule_pb2.ResumeScheduleRequest, context: RpcContext
    ) -> schedule_pb2.ResumeScheduleResponse:
        caller = caller_of(context.invocation_metadata())
        resumed = await self.change.resume(_schedule_id(request.schedule_id), caller)
        return schedule_pb2.ResumeScheduleResponse(schedule=_shown(resumed))

    async def DeleteSchedule(
        self, request: schedule_pb2.DeleteScheduleRequest, context: RpcContext
    ) -> schedule_pb2.DeleteScheduleResponse:
        await self.change.delete(_schedule_id(request.schedule_id), caller_of(context.invocation_metadata()))
        return schedule_pb2.DeleteScheduleResponse()
