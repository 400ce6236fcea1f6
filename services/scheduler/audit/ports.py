"""The ports by which records of the audit are added and listed."""

from collections.abc import Sequence
from typing import Protocol

from services.scheduler.audit.audit_record import AuditFilter, AuditPage, AuditRecord, ChangePage, ObjectKind


class ChangeList(Protocol):
    async def page(
        self, size: int, before: int | None, *, object_id: str | None = None, kind: ObjectKind | None = None
    ) -> ChangePage:
        """Changes with a number below `before`; only those of an object or of a kind where they are given."""
        ...


class AuditStore(Protocol):
    async def add(self, records: Sequence[AuditRecord]) -> None: ...

    async def records(self, wanted: AuditFilter, size: int, before: int | None) -> AuditPage:
        """Records with a number below `before`."""
        ...
