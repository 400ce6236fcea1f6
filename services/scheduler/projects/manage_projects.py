"""Declares projects, and gives users roles in them."""

from dataclasses import dataclass
from uuid import UUID, uuid5

from proctor.values.generation import Problem
from proctor.values.names.project import MAX_PROJECT_CHARACTERS
from proctor.values.names.user import Caller, Role
from services.common.checked_fields import invalid_field, nul_problem, refuse
from services.common.clock import Clock
from services.common.errors import ProjectNotFound
from services.common.requests.request_fields import hidden_problem, user_problem
from services.scheduler.audit.audit_record import Author
from services.scheduler.projects.ports import ProjectStore
from services.scheduler.projects.project import ROLES, Member, Project

MAX_NOTE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ManageProjects:
    projects: ProjectStore
    clock: Clock

    async def create(self, name: str, note: str, caller: Caller, request_id: str) -> Project:
        """Raises `InvalidParameter`, and what `ProjectStore.add` raises."""
        refuse(_name_problem(name) or nul_problem("note", note) or hidden_problem("note", note))
        if len(note) > MAX_NOTE_CHARACTERS:
            raise invalid_field("note", f"has more than {MAX_NOTE_CHARACTERS} characters")
        request = uuid5(UUID(request_id), caller.name)
        return await self.projects.add(name, note, self._author(caller), request)

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


def _name_problem(name: str) -> Problem | None:
    if 0 < len(name) <= MAX_PROJECT_CHARACTERS and name.isprintable() and name == name.strip():
        # One of digits would read as the number of another project.
        return (
            Problem("name", "name has digits only, but a number names a project already.")
            if (name.isdigit())
            else hidden_problem("name", name)
        )
    shape = f"1 to {MAX_PROJECT_CHARACTERS} printable characters without blanks around them"
    return Problem("name", f"name is {name[:MAX_PROJECT_CHARACTERS]!a}, but must be {shape}.")
