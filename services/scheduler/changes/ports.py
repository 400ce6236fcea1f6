"""The port by which changes of users are listed."""

from typing import Protocol

from services.scheduler.changes.user_change import ChangePage, ObjectKind


class ChangeList(Protocol):
    async def page(
        self, size: int, before: int | None, *, object_id: str | None = None, kind: ObjectKind | None = None
    ) -> ChangePage:
        """Changes with a number below `before`; only those of an object or of a kind where they are given."""
        ...
