"""The port by which projects are stored."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from proctor.values.names.user import Role
from services.scheduler.audit.audit_record import Author
from services.scheduler.projects.project import Member, Project, ProjectChanges, ProjectPage, ProjectUse


class ProjectStore(Protocol):
    """Projects that the caller sees, with their members."""

    async def add(self, name: str, note: str, author: Author, request: UUID) -> Project:
        """Returns the project of an earlier call with this request.

        Raises `ProjectNameTaken`, `TooManyProjects` or `RowsNotGuarded`.
        """
        ...

    async def update(self, project_id: int, changes: ProjectChanges, author: Author) -> Project:
        """Raises `ProjectNotFound`, `ProjectNameTaken` or `TooManyProjects`."""
        ...

    async def get(self, project_id: int, name: str = "") -> Project:
        """By its number, or by its name. Raises `ProjectNotFound`."""
        ...

    async def page(self, size: int, after: str) -> ProjectPage:
        """Projects whose names come after a name."""
        ...

    async def members(self, project_id: int) -> Sequence[Member]: ...

    async def set_member(self, project_id: int, user: str, role: Role | None, author: Author) -> None:
        """None takes the role away. Changes nothing where the user has it. Raises `TooManyProjects`."""
        ...


class ProjectUses(Protocol):
    """What projects use of their limits, as the topic of runs counts it."""

    async def use(self, project_id: int, now: datetime) -> ProjectUse: ...
