"""Views of batches and files for their templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.wire.enums import word_of
from services.gateway.http.presentation import moment

_FINAL = frozenset(
    {
        batch_pb2.BATCH_STATE_COMPLETED,
        batch_pb2.BATCH_STATE_FAILED,
        batch_pb2.BATCH_STATE_EXPIRED,
        batch_pb2.BATCH_STATE_CANCELLED,
    }
)
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


@dataclass(frozen=True, slots=True)
class BatchRow:
    batch_id: str
    state: str
    is_final: bool
    is_cancelling: bool
    model: str
    endpoint: str
    user: str
    total: int
    answered: int
    failed: int
    run_id: str
    input_file_id: str
    output_file_id: str
    error_file_id: str
    created_at: datetime | None
    expires_at: datetime | None

    @property
    def done(self) -> int:
        return self.answered + self.failed


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
    """A batch with the times of its states, and the faults of its lines."""

    batch: BatchRow
    window: str
    metadata: Mapping[str, str]
    errors: Sequence[batch_pb2.BatchError]
    state_times: Sequence[tuple[str, datetime]]
    prompt_tokens: int
    completion_tokens: int
    ask: str
    now: datetime


@dataclass(frozen=True, slots=True)
class FileRow:
    """`fault` is the first fault of its lines."""

    file_id: str
    name: str
    purpose: str
    size: int
    rows: int
    user: str
    faults: int
    fault: str
    created_at: datetime | None
    expires_at: datetime | None


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
        named = {"purpose": self.purpose, "after": after, **changes}
        kept = {name: value for name, value in named.items() if value}
        return f"/batches/files?{urlencode(kept)}" if kept else "/batches/files"


def batch_row(batch: batch_pb2.Batch) -> BatchRow:
    return BatchRow(
        batch_id=batch.batch_id,
        state=word_of(batch_pb2.BatchState, batch.state),
        is_final=batch.state in _FINAL,
        is_cancelling=batch.state == batch_pb2.BATCH_STATE_CANCELLING,
        model=batch.model,
        endpoint=batch.endpoint,
        user=batch.user,
        total=batch.total,
        answered=batch.answered,
        failed=batch.failed,
        run_id=batch.run_id,
        input_file_id=batch.input_file_id,
        output_file_id=batch.output_file_id,
        error_file_id=batch.error_file_id,
        created_at=moment(batch.created_at),
        expires_at=moment(batch.expires_at),
    )


def batch_view(batch: batch_pb2.Batch, now: datetime, ask: str) -> BatchView:
    times = [(name, moment(getattr(batch, f"{field}_at"))) for field, name in _STATES]
    return BatchView(
        batch=batch_row(batch),
        window=batch.completion_window,
        metadata=dict(sorted(batch.metadata.items())),
        errors=list(batch.errors),
        state_times=[(name, at) for name, at in times if at],
        prompt_tokens=batch.usage.prompt_tokens,
        completion_tokens=batch.usage.completion_tokens,
        ask=ask,
        now=now,
    )


def file_row(file: file_pb2.File) -> FileRow:
    first = file.faults[0] if file.faults else None
    return FileRow(
        file_id=file.file_id,
        name=file.name,
        purpose=word_of(file_pb2.FilePurpose, file.purpose),
        size=file.size_bytes,
        rows=file.row_count,
        user=file.user,
        faults=file.fault_count,
        fault=f"line {first.line}: {first.problem}" if first else "",
        created_at=moment(file.created_at),
        expires_at=moment(file.expires_at),
    )
