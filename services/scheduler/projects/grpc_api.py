"""ProjectService: converts, manages or reads, converts."""

# ruff: noqa: N802 - names are those of the generated service

from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import project_pb2, project_service_pb2
from proctor.v1 import project_service_pb2_grpc as project_grpc
from proctor.values.names.user import Caller, Role
from proctor.wire.convert import Codec
from proctor.wire.enums import number_of
from services.common.checked_fields import checked_choice, checked_text
from services.common.clock import Clock
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import read_page_token, write_page_token
from services.common.requests.request_fields import checked_page_size, checked_request_id
from services.scheduler.projects.manage_projects import ManageProjects
from services.scheduler.projects.ports import ProjectStore, ProjectUses
from services.scheduler.projects.project import Member, Project, ProjectChanges, ProjectUse

SERVICE_NAME = project_service_pb2.DESCRIPTOR.services_by_name["ProjectService"].full_name
_LIST = "projects"
_DEFAULT_PAGE_SIZE = 100
_PROJECT = Codec(Project, project_pb2.Project, unpaired={"role"})
_MEMBER = Codec(Member, project_pb2.ProjectMember)
_USE = Codec(ProjectUse, project_pb2.ProjectUse)
_CHANGES = Codec(ProjectChanges, project_service_pb2.UpdateProjectRequest, unpaired={"project_id"})


def _shown(project: Project, caller: Caller) -> project_pb2.Project:
    message = _PROJECT.to_proto(project)
    role = caller.role_in(project.project_id)
    if role:
        message.role = number_of(role)
    return message


def _caller(context: RpcContext) -> Caller:
    return caller_of(context.invocation_metadata())


@dataclass(frozen=True, kw_only=True)
class GrpcProjectApi(project_grpc.ProjectServiceServicer):
    manage: ManageProjects
    projects: ProjectStore
    uses: ProjectUses
    clock: Clock

    def register(self, server: grpc.aio.Server) -> None:
        project_grpc.add_ProjectServiceServicer_to_server(self, server)

    async def CreateProject(
        self, request: project_service_pb2.CreateProjectRequest, context: RpcContext
    ) -> project_service_pb2.CreateProjectResponse:
        caller = _caller(context)
        request_id = checked_request_id(request.request_id) or str(uuid4())
        project = await self.manage.create(request.name, request.note, caller, request_id)
        return project_service_pb2.CreateProjectResponse(project=_shown(project, caller))

    async def ListProjects(
        self, request: project_service_pb2.ListProjectsRequest, context: RpcContext
    ) -> project_service_pb2.ListProjectsResponse:
        size = checked_page_size(request.page_size, _DEFAULT_PAGE_SIZE)
        after = read_page_token(_LIST, request.page_token, _name) if request.page_token else ""
        page, caller = await self.projects.page(size, after), _caller(context)
        return project_service_pb2.ListProjectsResponse(
            projects=[_shown(project, caller) for project in page.projects],
            next_page_token="" if page.last is None else write_page_token(_LIST, page.last),
        )

    async def GetProject(
        self, request: project_service_pb2.GetProjectRequest, context: RpcContext
    ) -> project_service_pb2.GetProjectResponse:
        project = await self.projects.get(request.project_id, checked_text("name", request.name))
        members = await self.projects.members(project.project_id)
        use = await self.uses.use(project.project_id, self.clock.now())
        return project_service_pb2.GetProjectResponse(
            project=_shown(project, _caller(context)),
            members=[_MEMBER.to_proto(each) for each in members],
            use=_USE.to_proto(use),
        )

    async def UpdateProject(
        self, request: project_service_pb2.UpdateProjectRequest, context: RpcContext
    ) -> project_service_pb2.UpdateProjectResponse:
        caller = _caller(context)
        project = await self.manage.update(request.project_id, _CHANGES.from_proto(request), caller)
        return project_service_pb2.UpdateProjectResponse(project=_shown(project, caller))

    async def SetProjectMember(
        self, request: project_service_pb2.SetProjectMemberRequest, context: RpcContext
    ) -> project_service_pb2.SetProjectMemberResponse:
        role = checked_choice("role", Role, request.role) if request.role else Role.RUNNER
        member = await self.manage.set_member(request.project_id, request.user, role, _caller(context))
        return project_service_pb2.SetProjectMemberResponse(member=_MEMBER.to_proto(member))

    async def RemoveProjectMember(
        self, request: project_service_pb2.RemoveProjectMemberRequest, context: RpcContext
    ) -> project_service_pb2.RemoveProjectMemberResponse:
        await self.manage.remove_member(request.project_id, request.user, _caller(context))
        return project_service_pb2.RemoveProjectMemberResponse()


def _name(parts: list[str]) -> str:
    [name] = parts
    return checked_text("page_token", name)
