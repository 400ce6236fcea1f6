"""The audit over a list in the place of Postgres."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from services.common.errors import DependencyUnavailable
from services.scheduler.audit.audit_record import AuditFilter, AuditPage, AuditRecord, ChangePage, ObjectKind


@dataclass
class MemoryAudit:
    """Records of the gateway; there are no changes. None can be added while it is away."""

    added: list[AuditRecord] = field(default_factory=list)
    is_away: bool = False

    async def add(self, records: Sequence[AuditRecord]) -> None:
        if self.is_away:
            raise DependencyUnavailable(dependency="Postgres")
        self.added += records

    async def records(self, wanted: AuditFilter, size: int, before: int | None) -> AuditPage:
        """Numbered from 1."""
        end = before - 1 if before else len(self.added)
        found = [number for number in range(end, 0, -1) if _has_all(self.added[number - 1], wanted)]
        last = found[size - 1] if len(found) > size else None
        return AuditPage([self.added[number - 1] for number in found[:size]], last)

    async def page(
        self,
        size: int,  # noqa: ARG002  # the port's
        before: int | None,  # noqa: ARG002  # the port's
        *,
        object_id: str | None = None,  # noqa: ARG002  # the port's
        kind: ObjectKind | None = None,  # noqa: ARG002  # the port's
    ) -> ChangePage:
        return ChangePage([], None)


def _has_all(record: AuditRecord, wanted: AuditFilter) -> bool:
    pairs = (
        (wanted.user, record.user),
        (wanted.action, record.action),
        (wanted.object_id, record.object_id),
        (wanted.outcome, record.outcome),
    )
    is_late = wanted.since is None or record.recorded_at >= wanted.since
    return is_late and all(asked in (None, found) for asked, found in pairs)
