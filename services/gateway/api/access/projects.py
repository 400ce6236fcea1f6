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

# Limits that null takes away.
LIMITS = ("max_open_runs", "max_cost", "max_cost_per_month", "archive_after_days", "archive_over_bytes")

router = APIRouter(prefix=PROJECTS, tags=["projects"])


class ProjectShown(BaseModel):
    project_id: int = Field(description=f"Above {FIRST_DECLARED}; names the project in orders and uploads")
    name: str
    note: str
    created_by: str
    created_at: datetime
    role: str = Field(description="What the caller may do in it: viewer, runner, maintainer or operator")

    max_open_runs: int | None = Field(description="Runs that may be open at once; null: no limit of its own")
    max_cost: float | None = Field(description="What its runs may cost in all; null: no limit")
    max_cost_per_month: float | None = Field(
        description="What runs that end in one month of UTC may cost; null: no limit"
    )
    archive_after_days: int | None = Field(
        description="Days after which answers of closed runs are archived; null: as the installation does"
    )
    archive_over_bytes: int | None = Field(
        description="Bytes of answers of closed runs beyond which the oldest are archived; null: as the "
        "installation does"
    )
    is_shared: bool = Field(description="Whether every user may read what is in it")


class ProjectUseShown(BaseModel):
    """Costs are in the currency of the prices; models without a price cost nothing."""

    open_runs: int
    cost: float = Field(description="What its closed runs have cost, deleted ones too")
    cost_this_month: float = Field(description="What of that was closed in this month of UTC")
    reserved: float = Field(description="What its open runs may still cost")


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
    use: ProjectUseShown = Field(description="What it uses of its limits")


class ProjectOrder(RequestBody):
    name: Annotated[Text, Field(max_length=MAX_PROJECT_CHARACTERS, description="Unique, not digits alone")]
    note: Annotated[Text, Field(max_length=200, description="What it is for")] = ""


class ProjectPatch(RequestBody):
    """Absent fields stay unchanged; null takes a limit away. Limits and sharing are for operators."""

    name: Annotated[Text, Field(max_length=MAX_PROJECT_CHARACTERS)] | None = None
    note: Annotated[Text, Field(max_length=200)] | None = None
    max_open_runs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    max_cost_per_month: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    archive_after_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    archive_over_bytes: Annotated[int, Field(ge=10**6, le=10**15)] | None = None
    is_shared: bool | None = None

    def to_proto(self, project_id: int) -> project_service_pb2.UpdateProjectRequest:
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return project_service_pb2.UpdateProjectRequest(
            project_id=project_id,
            reset=[name for name in LIMITS if name in given and given[name] is None],
            **{name: value for name, value in given.items() if value is not None},
        )


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
        **project_shown(found.project).model_dump(),
        members=[member_shown(each) for each in found.members],
        use=present(ProjectUseShown, found.use),
    )


@router.patch(
    "/{project_id}",
    responses=problems(403, 404, 409, 422, 503),
    summary="Rename a project, share it, or set its limits",
)
async def update_project(
    scheduler: SchedulerCalls, project_id: ProjectId, changes: ProjectPatch
) -> ProjectShown:
    return project_shown((await scheduler.projects.UpdateProject(changes.to_proto(project_id))).project)


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
