"""KeyService and AccessService: converts, manages or reads, converts."""

# ruff: noqa: N802 - names are those of the generated services

from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import grpc

from proctor.v1 import access_service_pb2 as access_pb2
from proctor.v1 import access_service_pb2_grpc as access_grpc
from proctor.v1 import key_pb2, key_service_pb2
from proctor.v1 import key_service_pb2_grpc as key_grpc
from proctor.values.names.user import Role
from proctor.wire.convert import Codec
from services.common.api_keys import shown_prefix
from services.common.checked_fields import checked_choice, checked_text, invalid_field
from services.common.clock import Clock
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import number_token, read_number_token
from services.common.requests.request_fields import checked_page_size, checked_request_id
from services.scheduler.audit.audit_record import Author
from services.scheduler.audit.ports import AuditStore
from services.scheduler.audit.proto import RECORD
from services.scheduler.keys.api_key import ApiKey, EndedSession, KnownKey
from services.scheduler.keys.manage_keys import ManageKeys
from services.scheduler.keys.ports import KeyStore
from services.scheduler.projects.project import KnownMember, KnownProject

SERVICE_NAMES = (
    key_service_pb2.DESCRIPTOR.services_by_name["KeyService"].full_name,
    access_pb2.DESCRIPTOR.services_by_name["AccessService"].full_name,
)
_LIST = "keys"
_DEFAULT_PAGE_SIZE = 100
# Of a response: some 300 kB.
_CHANGES = 1000
# At a time: a gateway sends no more.
_RECORDS = 100
_MAX_SESSION = timedelta(days=31)
_MAX_SESSION_CHARACTERS = 64
_KEY = Codec(ApiKey, key_pb2.ApiKey, unpaired={"prefix"})
_KNOWN = Codec(KnownKey, access_pb2.KnownKey)
_SESSION = Codec(EndedSession, access_pb2.EndedSession)
_MEMBER = Codec(KnownMember, access_pb2.KnownMember)
_PROJECT = Codec(KnownProject, access_pb2.KnownProject)


def _request_id(request: key_service_pb2.CreateKeyRequest | key_service_pb2.RotateKeyRequest) -> str:
    return checked_request_id(request.request_id) or str(uuid4())


def _shown(key: ApiKey) -> key_pb2.ApiKey:
    message = _KEY.to_proto(key)
    message.prefix = shown_prefix(key.key_id)
    return message


@dataclass(frozen=True, kw_only=True)
class GrpcKeyApi(key_grpc.KeyServiceServicer, access_grpc.AccessServiceServicer):
    """`KeyService` for operators, and `AccessService` for gateways."""

    manage: ManageKeys
    keys: KeyStore
    audit: AuditStore
    clock: Clock

    def register(self, server: grpc.aio.Server) -> None:
        key_grpc.add_KeyServiceServicer_to_server(self, server)
        access_grpc.add_AccessServiceServicer_to_server(self, server)

    async def CreateKey(
        self, request: key_service_pb2.CreateKeyRequest, context: RpcContext
    ) -> key_service_pb2.CreateKeyResponse:
        role = checked_choice("role", Role, request.role) if request.role else Role.RUNNER
        made = await self.manage.create(
            user=request.user,
            role=role,
            days=request.days,
            note=request.note,
            author=self._author(context),
            request_id=_request_id(request),
            project_id=request.project_id,
        )
        return key_service_pb2.CreateKeyResponse(key=_shown(made.key), secret=made.secret.secret)

    async def ListKeys(
        self,
        request: key_service_pb2.ListKeysRequest,
        context: RpcContext,  # noqa: ARG002  # the contract's
    ) -> key_service_pb2.ListKeysResponse:
        size = checked_page_size(request.page_size, _DEFAULT_PAGE_SIZE)
        before = read_number_token(_LIST, request.page_token)
        page = await self.keys.page(size, before, checked_text("user", request.user))
        return key_service_pb2.ListKeysResponse(
            keys=[_shown(key) for key in page.keys],
            next_page_token="" if page.last is None else number_token(_LIST, page.last),
        )

    async def RotateKey(
        self, request: key_service_pb2.RotateKeyRequest, context: RpcContext
    ) -> key_service_pb2.RotateKeyResponse:
        hours = request.overlap_hours if request.HasField("overlap_hours") else None
        made = await self.manage.rotate(
            checked_text("key_id", request.key_id),
            days=request.days,
            overlap_hours=hours,
            author=self._author(context),
            request_id=_request_id(request),
        )
        return key_service_pb2.RotateKeyResponse(key=_shown(made.key), secret=made.secret.secret)

    async def RevokeKey(
        self, request: key_service_pb2.RevokeKeyRequest, context: RpcContext
    ) -> key_service_pb2.RevokeKeyResponse:
        key = await self.manage.revoke(checked_text("key_id", request.key_id), self._author(context))
        return key_service_pb2.RevokeKeyResponse(key=_shown(key))

    async def ListAccessChanges(
        self,
        request: access_pb2.ListAccessChangesRequest,
        context: RpcContext,  # noqa: ARG002  # the contract's
    ) -> access_pb2.ListAccessChangesResponse:
        now = self.clock.now()
        if request.used_key_ids:
            await self.keys.note_uses(list(request.used_key_ids), now)
        changes = await self.keys.changes_behind(request.version, now, _CHANGES)
        return access_pb2.ListAccessChangesResponse(
            version=changes.version,
            keys=[_KNOWN.to_proto(key) for key in changes.keys],
            sessions=[_SESSION.to_proto(session) for session in changes.sessions],
            members=[_MEMBER.to_proto(member) for member in changes.members],
            projects=[_PROJECT.to_proto(project) for project in changes.projects],
            has_more=changes.has_more,
            is_unknown_version=changes.is_unknown_version,
        )

    async def EndSession(
        self, request: access_pb2.EndSessionRequest, context: RpcContext
    ) -> access_pb2.EndSessionResponse:
        session_id = checked_text("session_id", request.session_id)
        if not 0 < len(session_id) <= _MAX_SESSION_CHARACTERS:
            raise invalid_field("session_id", f"must have 1 to {_MAX_SESSION_CHARACTERS} characters")
        ends_in = min(request.ends_in.ToTimedelta(), _MAX_SESSION)
        author = self._author(context)
        await self.keys.end_session(session_id, author.at + ends_in, author)
        return access_pb2.EndSessionResponse()

    async def AddAuditRecords(
        self,
        request: access_pb2.AddAuditRecordsRequest,
        context: RpcContext,  # noqa: ARG002  # the contract's
    ) -> access_pb2.AddAuditRecordsResponse:
        await self.audit.add([RECORD.from_proto(record) for record in request.records[:_RECORDS]])
        return access_pb2.AddAuditRecordsResponse()

    def _author(self, context: RpcContext) -> Author:
        return Author(caller_of(context.invocation_metadata()).name, self.clock.now())
