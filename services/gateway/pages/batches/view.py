"""Views of batches and files for their templates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from services.gateway.api.openai import BatchObject, FileObject
from services.gateway.pages.addresses import address

_FINAL = frozenset({"completed", "failed", "expired", "cancelled"})
# States of a batch in their usual order, by the name of their times.
_STATES = (
    ("created", "Created"),
    ("in_progress", "In progress"),
    ("finalizing", "Finalizing"),
    ("cancelling", "Cancelling"),
    ("completed", "Completed"),
    ("failed", "Failed"),
    ("expired", "Expired"),
    ("cancelled", "Cancelled"),
)


class BatchRow(BatchObject):
    user: str
    run_id: str
    project_id: int

    @property
    def is_final(self) -> bool:
        return self.status in _FINAL

    @property
    def done(self) -> int:
        return self.request_counts.completed + self.request_counts.failed

    @property
    def state_times(self) -> Sequence[tuple[str, int]]:
        """When the batch came into its states, in seconds since 1970."""
        times = ((name, getattr(self, f"{state}_at")) for state, name in _STATES)
        return [(name, at) for name, at in times if at]


class FileRow(FileObject):
    user: str
    row_count: int
    project_id: int


@dataclass(frozen=True, slots=True)
class BatchListView:
    """A page of batches, newest first; `following` is the last id of it where more follow."""

    rows: Sequence[BatchRow]
    after: str
    following: str
    now: datetime

    @property
    def is_live(self) -> bool:
        """New batches come on the first page only."""
        return not self.after or any(not row.is_final for row in self.rows)

    @property
    def socket(self) -> str:
        """The address of the socket that pushes this page, up to its last parameter."""
        return f"/batches/socket?{urlencode({'after': self.after})}&"


@dataclass(frozen=True, slots=True)
class BatchView:
    batch: BatchRow
    ask: str
    now: datetime


@dataclass(frozen=True, slots=True)
class FileListView:
    """A page of files, newest first, or one alone; `asked` is the one that the page asks about."""

    rows: Sequence[FileRow]
    purpose: str
    after: str
    following: str
    asked: FileRow | None
    now: datetime
    is_one: bool = False

    def link(self, after: str = "", **changes: str) -> str:
        return address("/batches/files", {"purpose": self.purpose, "after": after, **changes})
