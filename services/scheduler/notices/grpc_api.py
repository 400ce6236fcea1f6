"""NoticeService: converts, changes or reads, converts. Each caller has targets of its own."""

# ruff: noqa: N802 - names are those of the generated service

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4, uuid5

import grpc

from proctor.v1 import notice_service_pb2 as notice_pb2
from proctor.v1 import notice_service_pb2_grpc as notice_grpc
from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from proctor.values.names.user import Caller
from proctor.wire.convert import Codec
from services.common.checked_fields import checked_choice, checked_id, checked_text
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import number_token, read_number_token
from services.common.requests.request_fields import checked_page_size, checked_request_id
from services.scheduler.notices.change_targets import ChangeTargets, WantedTarget
from services.scheduler.notices.errors import NoticeTargetNotFound
from services.scheduler.notices.notice import Notice, NoticeTarget
from services.scheduler.notices.ports import NoticeTargets

SERVICE_NAME = notice_pb2.DESCRIPTOR.services_by_name["NoticeService"].full_name
_LIST = "notices"
_DEFAULT_PAGE_SIZE = 100
_TARGET = Codec(NoticeTarget, notice_pb2.NoticeTarget)
_NOTICE = Codec(Notice, notice_pb2.Notice, unpaired={"facts"})


def _shown(target: NoticeTarget) -> notice_pb2.NoticeTarget:
    message = _TARGET.to_proto(target)
    message.address = target.shown_address
    return message


def _caller(context: RpcContext) -> Caller:
    return caller_of(context.invocation_metadata())


def _target_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise NoticeTargetNotFound(target_id=text) from error


@dataclass(frozen=True, kw_only=True)
class GrpcNoticeApi(notice_grpc.NoticeServiceServicer):
    """`secret_of` gives the key that signs what goes to a target."""

    change: ChangeTargets
    targets: NoticeTargets
    secret_of: Callable[[str], str]

    def register(self, server: grpc.aio.Server) -> None:
        notice_grpc.add_NoticeServiceServicer_to_server(self, server)

    async def AddNoticeTarget(
        self, request: notice_pb2.AddNoticeTargetRequest, context: RpcContext
    ) -> notice_pb2.AddNoticeTargetResponse:
        caller = _caller(context)
        request_id = checked_request_id(request.request_id) or str(uuid4())
        scope = checked_choice("scope", NoticeScope, request.scope) if request.scope else NoticeScope.OWN
        wanted = WantedTarget(
            target_id=str(uuid5(UUID(request_id), f"target of {caller.name}")),
            channel=checked_choice("channel", NoticeChannel, request.channel),
            address=checked_text("address", request.address.strip()),
            events=tuple(checked_choice("events", NoticeEvent, event) for event in request.events),
            scope=scope,
            project_id=request.project_id,
        )
        target = await self.change.add(wanted, caller)
        is_signed = target.channel is NoticeChannel.WEBHOOK
        return notice_pb2.AddNoticeTargetResponse(
            target=_shown(target), secret=self.secret_of(target.target_id) if is_signed else ""
        )

    async def ListNoticeTargets(
        self,
        request: notice_pb2.ListNoticeTargetsRequest,  # noqa: ARG002  # the contract's
        context: RpcContext,
    ) -> notice_pb2.ListNoticeTargetsResponse:
        targets = await self.targets.list(_caller(context).name)
        return notice_pb2.ListNoticeTargetsResponse(targets=[_shown(each) for each in targets])

    async def DeleteNoticeTarget(
        self, request: notice_pb2.DeleteNoticeTargetRequest, context: RpcContext
    ) -> notice_pb2.DeleteNoticeTargetResponse:
        await self.change.delete(_target_id(request.target_id), _caller(context))
        return notice_pb2.DeleteNoticeTargetResponse()

    async def TestNoticeTarget(
        self, request: notice_pb2.TestNoticeTargetRequest, context: RpcContext
    ) -> notice_pb2.TestNoticeTargetResponse:
        notice = await self.change.test(_target_id(request.target_id), _caller(context))
        return notice_pb2.TestNoticeTargetResponse(notice=_NOTICE.to_proto(notice))

    async def ListNotices(
        self, request: notice_pb2.ListNoticesRequest, context: RpcContext
    ) -> notice_pb2.ListNoticesResponse:
        size = checked_page_size(request.page_size, _DEFAULT_PAGE_SIZE)
        before = read_number_token(_LIST, request.page_token)
        target_id = checked_id("target_id", request.target_id) if request.target_id else None
        page = await self.targets.page(_caller(context).name, target_id, size, before)
        return notice_pb2.ListNoticesResponse(
            notices=[_NOTICE.to_proto(each) for each in page.notices],
            next_page_token="" if page.last is None else number_token(_LIST, page.last),
        )
