"""Projects and their members in Postgres."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from proctor.values.names.user import OTHER_USERS, Role
from services.common.errors import ProjectNotFound, RowsNotGuarded
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.projects.errors import ProjectNameTaken, TooManyProjects
from services.scheduler.projects.project import LIMITS, Member, Project, ProjectChanges, ProjectPage
from services.scheduler.projects.project_name import look_of

MAX_PROJECTS = 10_000
# Every replica of the gateway holds them: some 5 MB.
MAX_MEMBERS = 50_000
# They go with each call of the user, some 20 bytes each.
MAX_PROJECTS_OF_USER = 200
_SHOWN_MEMBERS = 1000


class PostgresProjects:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def add(self, name: str, note: str, author: Author, request: UUID) -> Project:
        async def add(transaction: PostgresTransaction) -> Project:
            # One after the other: two calls of one request would both find nothing.
            version = await transaction.fetchval("take_access_version")
            if earlier := await transaction.fetchrow("find_requested_project", request_id=request):
                return Project(**earlier)
            role = await transaction.fetchval("find_bypassing_role")
            if role is not None:
                raise RowsNotGuarded(role=role)
            row = await transaction.fetchrow(
                "add_project",
                name=name,
                note=note,
                created_by=author.user,
                created_at=author.at,
                request_id=request,
                version=version,
            )
            if row is None:
                raise ProjectNameTaken(name=name)
            await _refuse_twin(transaction, row["project_id"], name)
            if await transaction.fetchval("count_projects") > MAX_PROJECTS:
                raise TooManyProjects(limit=MAX_PROJECTS, things="projects")
            project = await _read(transaction, row["project_id"])
            await record_change(transaction, _change(author, Action.CREATE, project.project_id, name))
            return project

        return await self._session.run(add)

    async def update(self, project_id: int, changes: ProjectChanges, author: Author) -> Project:
        async def update(transaction: PostgresTransaction) -> Project:
            values = {name: getattr(changes, name) for name in ("name", "note", *LIMITS)}
            version = await transaction.fetchval("take_access_version")
            found = await transaction.fetchval(
                "update_project", project_id=project_id, reset=list(changes.reset), version=version, **values
            )
            if found is None:
                raise ProjectNotFound
            if changes.name is not None:
                await _refuse_twin(transaction, project_id, changes.name)
            if changes.is_shared is not None:
                role = Role.VIEWER if changes.is_shared else None
                await _set_member(transaction, project_id, OTHER_USERS, role, author)
            changed = {name: value for name, value in values.items() if value is not None}
            words = ", ".join([*(f"{name}: {value}" for name, value in changed.items()), *changes.reset])
            if words:
                await record_change(transaction, _change(author, Action.SET, project_id, words[:1024]))
            return await _read(transaction, project_id)

        try:
            return await self._session.run(update)
        except asyncpg.UniqueViolationError as error:
            raise ProjectNameTaken(name=changes.name or "") from error

    async def get(self, project_id: int, name: str = "") -> Project:
        row = await self._session.fetchrow("find_project", project_id=project_id, name=name)
        if row is None:
            raise ProjectNotFound
        return Project(**row)

    async def page(self, size: int, after: str) -> ProjectPage:
        # One more than is shown: then there is a next page.
        rows = await self._session.fetch("list_projects", after_name=after, limit=size + 1)
        projects = [Project(**row) for row in rows[:size]]
        return ProjectPage(projects, projects[-1].name if len(rows) > size else None)

    async def members(self, project_id: int) -> Sequence[Member]:
        rows = await self._session.fetch("list_members", project_id=project_id, limit=_SHOWN_MEMBERS)
        return [_member(row) for row in rows]

    async def set_member(self, project_id: int, user: str, role: Role | None, author: Author) -> None:
        async def change(transaction: PostgresTransaction) -> None:
            await _set_member(transaction, project_id, user, role, author)

        await self._session.run(change)


async def check_guarded(session: PostgresSession) -> None:
    """Raises `RowsNotGuarded` where projects are declared and the role of the session sees past policies.

    It cannot declare any, but a changed role, another DSN or a restored backup has them.
    """
    role = await session.fetchval("find_unguarded_role")
    if role is not None:
        raise RowsNotGuarded(role=role)


async def _read(transaction: PostgresTransaction, project_id: int) -> Project:
    row = await transaction.fetchrow("find_project", project_id=project_id, name="")
    assert row
    return Project(**row)


async def _refuse_twin(transaction: PostgresTransaction, project_id: int, name: str) -> None:
    """Versions are taken one after the other, so no twin is added meanwhile. Raises `ProjectNameTaken`."""
    look = look_of(name)
    others = await transaction.fetch("list_project_names", project_id=project_id)
    if any(look_of(row["name"]) == look for row in others):
        raise ProjectNameTaken(name=name)


async def _set_member(
    transaction: PostgresTransaction, project_id: int, user: str, role: Role | None, author: Author
) -> None:
    version = await transaction.fetchval("take_access_version")
    values = {
        "project_id": project_id,
        "username": user,
        "changed_by": author.user,
        "changed_at": author.at,
        "version": version,
    }
    if role:
        is_changed = await transaction.fetchval("set_member", role=role, **values)
    else:
        is_changed = await transaction.fetchval("remove_member", **values)
    if not is_changed:
        return
    await _check_counts(transaction, user)
    action, detail = (Action.SET, f"{user}: {role}") if role else (Action.REMOVE, user)
    await record_change(transaction, _change(author, action, project_id, detail))


async def _check_counts(transaction: PostgresTransaction, user: str) -> None:
    counted = await transaction.fetchrow("count_members", username=user)
    assert counted
    if counted["members"] > MAX_MEMBERS:
        raise TooManyProjects(limit=MAX_MEMBERS, things="members")
    if counted["projects"] > MAX_PROJECTS_OF_USER:
        raise TooManyProjects(limit=MAX_PROJECTS_OF_USER, things=f"projects of {user}")


def _change(author: Author, action: Action, project_id: int, detail: str) -> Change:
    return Change(author, action, ObjectKind.PROJECT, str(project_id), detail, project_id)


def _member(row: asyncpg.Record) -> Member:
    return Member(
        user=row["username"],
        role=Role(row["role"]),
        changed_by=row["changed_by"],
        changed_at=row["changed_at"],
    )
