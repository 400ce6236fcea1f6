"""Declared projects: their members and operators alone see what is in them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from proctor.v1 import key_pb2, project_pb2, project_service_pb2
from proctor.values.names.project import FIRST_DECLARED, MAX_PROJECT_CHARACTERS
from proctor.values.names.user import MAX_USER_CHARACTERS, Role
from proctor.wire.enums import number_of, word_of
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Cursor, RequestBody, Text
from services.gateway.http.paths import PROJECTS
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

ProjectId = Annotated[int, Path(ge=0, lt=2**63, description="The number of a declared project")]
PageSize = Annotated[int, Query(ge=1, le=500)]
UserName = Annotated[Text, Query(max_length=MAX_USER_CHARACTERS, description="The member")]

router = APIRouter(prefix=PROJECTS, tags=["projects"])


class ProjectShown(BaseModel):
    project_id: int = Field(description=f"Above {FIRST_DECLARED}; names the project in orders and uploads")
    name: str
    note: str
    created_by: str
    created_at: datetime
    role: str = Field(description="What the caller may do in it: viewer, runner, maintainer or operator")


class ProjectPage(BaseModel):
    projects: list[ProjectShown] = Field(description="Those of the caller, by name; all for an operator")
    next_cursor: str | None


class ProjectMember(BaseModel):
    user: str
    role: str = Field(description="viewer, runner or maintainer")
    changed_by: str
    changed_at: datetime


class ProjectDetail(ProjectShown):
    members: list[ProjectMember] = Field(description="By name; at most 1000")


class ProjectOrder(RequestBody):
    name: Annotated[Text, Field(max_length=MAX_PROJECT_CHARACTERS, description="Unique, not digits alone")]
    note: Annotated[Text, Field(max_length=200, description="What it is for")] = ""


class MemberOrder(RequestBody):
    user: Annotated[
        Text, Field(min_length=1, max_length=MAX_USER_CHARACTERS, description="The name that keys prove")
    ]
    role: Role = Field(default=Role.RUNNER, description="viewer, runner or maintainer")


@router.get("", responses=problems(400, 422, 503), summary="Declared projects that the caller sees")
async def list_projects(scheduler: SchedulerCalls, limit: PageSize = 100, cursor: Cursor = "") -> ProjectPage:
    request = project_service_pb2.ListProjectsRequest(page_size=limit, page_token=cursor)
    page = await scheduler.projects.ListProjects(request)
    return ProjectPage(
        projects=[project_shown(each) for each in page.projects], next_cursor=page.next_page_token or None
    )


@router.post("", status_code=201, responses=problems(409, 422, 503), summary="Declare a project")
async def create_project(
    scheduler: SchedulerCalls, request_id: RequestId, order: ProjectOrder
) -> ProjectShown:
    request = project_service_pb2.CreateProjectRequest(
        name=order.name, note=order.note, request_id=request_id
    )
    return project_shown((await scheduler.projects.CreateProject(request)).project)


@router.get("/{project_id}", responses=problems(404, 422, 503), summary="A project with its members")
async def get_project(scheduler: SchedulerCalls, project_id: ProjectId) -> ProjectDetail:
    found = await scheduler.projects.GetProject(project_service_pb2.GetProjectRequest(project_id=project_id))
    return ProjectDetail(
        **project_shown(found.project).model_dump(), members=[member_shown(each) for each in found.members]
    )


@router.put(
    "/{project_id}/members",
    responses=problems(404, 409, 422, 503),
    summary="Give a user a role in a project; for its maintainers and operators",
)
async def set_member(scheduler: SchedulerCalls, project_id: ProjectId, order: MemberOrder) -> ProjectMember:
    request = project_service_pb2.SetProjectMemberRequest(
        project_id=project_id, user=order.user, role=number_of(order.role)
    )
    return member_shown((await scheduler.projects.SetProjectMember(request)).member)


@router.delete(
    "/{project_id}/members",
    status_code=204,
    responses=problems(404, 422, 503),
    summary="Take a user's role away: every replica refuses it within a second",
)
async def remove_member(scheduler: SchedulerCalls, project_id: ProjectId, user: UserName) -> None:
    request = project_service_pb2.RemoveProjectMemberRequest(project_id=project_id, user=user)
    await scheduler.projects.RemoveProjectMember(request)


def project_shown(project: project_pb2.Project) -> ProjectShown:
    return present(ProjectShown, project, role=word_of(key_pb2.Role, project.role))


def member_shown(member: project_pb2.ProjectMember) -> ProjectMember:
    return present(ProjectMember, member, role=word_of(key_pb2.Role, member.role))
