"""Declared projects: a list, and one with its members, its limits and what it uses of them."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from proctor.values.names.user import Role
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.access.projects import (
    LIMITS,
    MemberOrder,
    ProjectDetail,
    ProjectId,
    ProjectOrder,
    ProjectPatch,
    ProjectShown,
    UserName,
    create_project,
    get_project,
    list_projects,
    remove_member,
    set_member,
    update_project,
)
from services.gateway.auth.identity import CallerOf, Now
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.form_sentences import form_sentence
from services.gateway.http.parameters import Cursor
from services.gateway.pages.page import Notice, Page, PageOf
from services.gateway.pages.text import entered

_PAGE = "/settings/projects"
_SHOWN = 50
# What a form may be told beside its fields; others are pages of their own.
_SHOWN_KINDS = (ErrorKind.INVALID, ErrorKind.CONFLICT)

router = APIRouter(prefix=_PAGE, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ProjectListView:
    projects: Sequence[ProjectShown]
    following: str
    is_operator: bool
    faults: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProjectView:
    """`ask` is the member who is to be removed."""

    project: ProjectDetail
    now: datetime
    ask: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_maintained(self) -> bool:
        """Whether the caller may give roles in it."""
        return self.project.role in (Role.MAINTAINER.value, Role.OPERATOR.value)

    @property
    def is_operated(self) -> bool:
        return self.project.role == Role.OPERATOR.value

    @property
    def roles(self) -> Sequence[Role]:
        return [role for role in Role if role is not Role.OPERATOR]

    @property
    def asked(self) -> str:
        return next((each.user for each in self.project.members if each.user == self.ask), "")

    def value(self, name: str) -> str:
        """What a field of the settings has: what was entered, or what holds."""
        if name in self.given:
            return self.given[name]
        known = getattr(self.project, name)
        return f"{known:g}" if isinstance(known, float) else "" if known is None else str(known)


@router.get("")
async def show_projects(
    page: PageOf, scheduler: SchedulerCalls, caller: CallerOf, cursor: Cursor = ""
) -> Response:
    return page.show("settings/projects", await _list(scheduler, cursor, is_operator=caller.is_operator))


@router.post("")
async def declare_project(
    request: Request, page: PageOf, scheduler: SchedulerCalls, caller: CallerOf
) -> Response:
    given = await _entries(request)
    made: list[ProjectShown] = []

    async def declare() -> None:
        made.append(await create_project(scheduler, str(uuid4()), ProjectOrder.model_validate(given)))

    if faults := await _faults(declare):
        found = await _list(scheduler, "", is_operator=caller.is_operator, faults=faults, given=given)
        return page.show("settings/projects", found, status=422)
    [project] = made
    notice = Notice(f"{project.name} is declared: its members and operators alone see what is in it.")
    return page.go(f"{_PAGE}/{project.project_id}", notice)


@router.get("/{project_id}")
async def show_project(
    page: PageOf, scheduler: SchedulerCalls, now: Now, project_id: ProjectId, ask: str = ""
) -> Response:
    return page.show("settings/project", ProjectView(await get_project(scheduler, project_id), now, ask))


@router.post("/{project_id}")
async def change_project(
    request: Request, page: PageOf, scheduler: SchedulerCalls, now: Now, project_id: ProjectId
) -> Response:
    """An empty limit is none. A form without limits leaves them."""
    given = await _entries(request)
    changes: dict[str, object] = {name: given[name] for name in ("name", "note") if name in given}
    changes |= {name: entered(given[name]) if given[name] else None for name in LIMITS if name in given}
    if "has_limits" in given:
        changes["is_shared"] = "is_shared" in given

    async def change() -> None:
        await update_project(scheduler, project_id, ProjectPatch.model_validate(changes))

    if faults := await _faults(change):
        return _refused(page, await get_project(scheduler, project_id), now, faults, given)
    return page.go(f"{_PAGE}/{project_id}", Notice("The project is changed."))


@router.post("/{project_id}/members")
async def give_role(
    request: Request, page: PageOf, scheduler: SchedulerCalls, now: Now, project_id: ProjectId
) -> Response:
    given = await _entries(request)

    async def change() -> None:
        await set_member(scheduler, project_id, MemberOrder.model_validate(given))

    said = f"{given.get('user', '')} is a {given.get('role', Role.RUNNER)} of the project."
    if faults := await _faults(change):
        return _refused(page, await get_project(scheduler, project_id), now, faults, given)
    return page.go(f"{_PAGE}/{project_id}", Notice(said))


@router.post("/{project_id}/members/remove")
async def take_role(
    page: PageOf, scheduler: SchedulerCalls, project_id: ProjectId, user: UserName
) -> Response:
    await remove_member(scheduler, project_id, user)
    said = f"{user} sees nothing of the project from now on."
    return page.go(f"{_PAGE}/{project_id}", Notice(said))


def _refused(
    page: Page, project: ProjectDetail, now: datetime, faults: Mapping[str, str], given: Mapping[str, str]
) -> Response:
    """The page of the project, with what is wrong beside the fields."""
    view = ProjectView(project, now, faults=faults, given=given)
    return page.show("settings/project", view, status=422)


async def _entries(request: Request) -> dict[str, str]:
    return {name: str(value).strip() for name, value in (await request.form()).items()}


async def _faults(change: Callable[[], Coroutine[Any, Any, None]]) -> Mapping[str, str]:
    """What is wrong with a form, by its fields; nothing where the change was made."""
    try:
        await change()
    except ValidationError as error:
        return {str(fault["loc"][0]): form_sentence(fault) for fault in error.errors()}
    except DomainError as error:
        if error.kind not in _SHOWN_KINDS:
            raise
        return {str(error.facts.get("field", "")): error.message}
    return {}


async def _list(
    scheduler: Scheduler, cursor: str, *, is_operator: bool, **shown: Mapping[str, str]
) -> ProjectListView:
    listed = await list_projects(scheduler, _SHOWN, cursor)
    return ProjectListView(listed.projects, listed.next_cursor or "", is_operator, **shown)
