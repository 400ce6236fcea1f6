"""Declares projects, and gives users roles in them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID, uuid5

from proctor.values.generation import Problem
from proctor.values.names.user import Caller, Role
from services.common.checked_fields import invalid_field, nul_problem, refuse
from services.common.clock import Clock
from services.common.errors import OperatorsOnly, ProjectNotFound
from services.common.requests.request_fields import hidden_problem, user_problem
from services.scheduler.audit.audit_record import Author
from services.scheduler.projects.ports import ProjectStore
from services.scheduler.projects.project import LIMITS, ROLES, Member, Project, ProjectChanges
from services.scheduler.projects.project_name import name_problem

MAX_NOTE_CHARACTERS = 200
MAX_OPEN_RUNS = 100_000
MAX_ARCHIVE_DAYS = 36_500
MIN_ARCHIVE_BYTES, MAX_ARCHIVE_BYTES = 10**6, 10**15


@dataclass(frozen=True, slots=True)
class ManageProjects:
    projects: ProjectStore
    clock: Clock

    async def create(self, name: str, note: str, caller: Caller, request_id: str) -> Project:
        """Raises `InvalidParameter`, and what `ProjectStore.add` raises."""
        refuse(name_problem(name) or _note_problem(note))
        request = uuid5(UUID(request_id), caller.name)
        return await self.projects.add(name, note, self._author(caller), request)

    async def update(self, project_id: int, changes: ProjectChanges, caller: Caller) -> Project:
        """Raises `InvalidParameter`, `ProjectNotFound`, `ProjectNameTaken`, `TooManyProjects`, and
        `OperatorsOnly` for a limit or for sharing.
        """
        if changes.name is not None:
            refuse(name_problem(changes.name))
        if changes.note is not None:
            refuse(_note_problem(changes.note))
        refuse(next(_limit_problems(changes), None))
        await self._check_maintainer(project_id, caller)
        if changes.is_of_operators and not caller.is_operator:
            raise OperatorsOnly(user=caller.name)
        return await self.projects.update(project_id, changes, self._author(caller))

    async def set_member(self, project_id: int, user: str, role: Role, caller: Caller) -> Member:
        """Raises `InvalidParameter` or `ProjectNotFound`."""
        refuse(user_problem(user))
        if role not in ROLES:
            raise invalid_field("role", f"is {role}, but must be {', '.join(ROLES[:-1])} or {ROLES[-1]}")
        await self._check_maintainer(project_id, caller)
        author = self._author(caller)
        await self.projects.set_member(project_id, user, role, author)
        return Member(user=user, role=role, changed_by=author.user, changed_at=author.at)

    async def remove_member(self, project_id: int, user: str, caller: Caller) -> None:
        """Can be repeated. Raises `InvalidParameter` or `ProjectNotFound`."""
        refuse(user_problem(user))
        await self._check_maintainer(project_id, caller)
        await self.projects.set_member(project_id, user, None, self._author(caller))

    async def _check_maintainer(self, project_id: int, caller: Caller) -> None:
        await self.projects.get(project_id)
        role = caller.role_in(project_id)
        if role is None or role < Role.MAINTAINER:
            raise ProjectNotFound

    def _author(self, caller: Caller) -> Author:
        return Author(caller.name, self.clock.now())


def _note_problem(note: str) -> Problem | None:
    if len(note) > MAX_NOTE_CHARACTERS:
        return Problem("note", f"note has more than {MAX_NOTE_CHARACTERS} characters.")
    return nul_problem("note", note) or hidden_problem("note", note)


def _limit_problems(changes: ProjectChanges) -> Iterator[Problem]:
    runs = changes.max_open_runs
    if runs is not None and not 1 <= runs <= MAX_OPEN_RUNS:
        yield Problem(
            "max_open_runs", f"max_open_runs is {runs}, but must be at least 1 and at most {MAX_OPEN_RUNS}."
        )
    days = changes.archive_after_days
    if days is not None and not 1 <= days <= MAX_ARCHIVE_DAYS:
        sentence = f"archive_after_days is {days}, but must be 1 to {MAX_ARCHIVE_DAYS}."
        yield Problem("archive_after_days", sentence)
    size = changes.archive_over_bytes
    if size is not None and not MIN_ARCHIVE_BYTES <= size <= MAX_ARCHIVE_BYTES:
        sentence = f"archive_over_bytes is {size}, but must be {MIN_ARCHIVE_BYTES} to {MAX_ARCHIVE_BYTES}."
        yield Problem("archive_over_bytes", sentence)
    for field in ("max_cost", "max_cost_per_month"):
        cost = getattr(changes, field)
        if cost is not None and not (cost > 0 and math.isfinite(cost)):
            yield Problem(field, f"{field} is {cost:g}, but must be above 0. Reset it for no limit.")
    for name in changes.reset:
        if name not in LIMITS:
            yield Problem("reset", f"reset names {name!a:.80}, but must name {', '.join(LIMITS)}.")
