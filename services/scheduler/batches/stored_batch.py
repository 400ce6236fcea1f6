"""A batch of the OpenAI protocol: a run over a file, its state, and the files of what came back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NewType
from uuid import UUID

from proctor.values.contract_enum import ContractEnum
from proctor.values.run import (
    MAX_WINDOW_SECONDS,
    MIN_WINDOW_SECONDS,
    RunCounts,
    RunId,
    RunState,
    window_seconds,
)
from services.common.errors import DomainError, ErrorKind
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.uploads.stored_file import FileId

ADVICE = 'must be hours or minutes from "1h" to "168h", such as "24h" or "90m"'

BatchId = NewType("BatchId", str)
_BATCH_ID = re.compile(r"batch_[0-9a-f]{32}")
_EXPIRED = "DEADLINE_REACHED"
# Every line was asked then, and each failure is in the error file.
_ASKED_ALL = "TOO_MANY_FAILURES"


class BatchNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="BATCH_NOT_FOUND"):
    """There is no batch {batch_id}. List the batches to see those there are."""


def window_of(text: str) -> timedelta | None:
    """None for what is not a window, or too short or too long a one."""
    try:
        # "024h" is 24 hours.
        seconds = window_seconds(text.lstrip("0"))
    except ValueError:
        return None
    # The batch's window becomes that of its run.
    return timedelta(seconds=seconds) if MIN_WINDOW_SECONDS <= seconds <= MAX_WINDOW_SECONDS else None


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """The order of a batch. `output_expires_after_seconds` None: its files stay."""

    input_file_id: FileId
    endpoint: str
    completion_window: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    output_expires_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class BatchError:
    """Why a batch fails: `param` is a field, "" the whole line; `line` counts from 1, 0 is the whole file."""

    code: str
    message: str
    param: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """Files that a batch wrote at `finalized_at`; None where a file would be empty."""

    finalized_at: datetime
    output_file_id: FileId | None = None
    error_file_id: FileId | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """`run` is None, and `errors` say why, where it failed before it had one; then it has no lines.

    `project_id` is that of its input file.
    """

    batch_id: BatchId
    user: str
    order: BatchOrder
    created_at: datetime
    total: int = 0
    run: Run | None = None
    errors: Sequence[BatchError] = ()
    files: BatchFiles | None = None
    project_id: int = 0


def is_batch_id(text: str) -> bool:
    return _BATCH_ID.fullmatch(text) is not None


def run_id_of(batch_id: BatchId) -> RunId:
    """The run of a batch has the same 32 digits."""
    return RunId(str(UUID(batch_id.removeprefix("batch_"))))


class BatchState(ContractEnum):
    """States in the words of the protocol."""

    VALIDATING = "validating", 1
    FAILED = "failed", 2
    IN_PROGRESS = "in_progress", 3
    FINALIZING = "finalizing", 4
    COMPLETED = "completed", 5
    EXPIRED = "expired", 6
    CANCELLING = "cancelling", 7
    CANCELLED = "cancelled", 8

    @property
    def is_final(self) -> bool:
        return self in _FINAL


_FINAL = frozenset({BatchState.FAILED, BatchState.COMPLETED, BatchState.EXPIRED, BatchState.CANCELLED})


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When it came into a state; None of those that it was not in. `expires_at` is when its window ends."""

    in_progress_at: datetime | None = None
    finalizing_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    expired_at: datetime | None = None
    cancelling_at: datetime | None = None
    cancelled_at: datetime | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Lines; `failed` are those with a failure, and once it has ended all without an answer."""

    total: int = 0
    answered: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class MissingLines:
    """The error of lines that were never requested."""

    code: str
    message: str


def state_of(batch: Batch) -> BatchState:
    run = batch.run
    if run is None:
        return BatchState.FAILED
    if run.state.is_final:
        return _ended_as(run) if batch.files else _ending_as(run)
    return BatchState.IN_PROGRESS if run.is_planned else BatchState.VALIDATING


def times_of(batch: Batch) -> BatchTimes:
    run, state = batch.run, state_of(batch)
    window = window_of(batch.order.completion_window)
    expires_at = batch.created_at + window if window else None
    if run is None:
        return BatchTimes(failed_at=batch.created_at, created_at=batch.created_at, expires_at=expires_at)
    ended_at = batch.files.finalized_at if batch.files else None
    was_cancelled = run.state is RunState.CANCELLED
    return BatchTimes(
        created_at=batch.created_at,
        expires_at=run.expires_at or expires_at,
        in_progress_at=run.started_at if run.is_planned else None,
        finalizing_at=None if was_cancelled else run.finished_at,
        completed_at=ended_at if state is BatchState.COMPLETED else None,
        failed_at=ended_at if state is BatchState.FAILED else None,
        expired_at=ended_at if state is BatchState.EXPIRED else None,
        cancelling_at=run.finished_at if was_cancelled else None,
        cancelled_at=ended_at if was_cancelled else None,
    )


def errors_of(batch: Batch) -> Sequence[BatchError]:
    run = batch.run
    if run is None or run.error is None or state_of(batch) is not BatchState.FAILED:
        return batch.errors
    return (BatchError(run.error.reason.lower(), run.error.message),)


def line_counts(batch: Batch, counts: RunCounts | None) -> LineCounts:
    answered = counts.recorded - counts.failed if counts else 0
    failed = counts.failed if counts else 0
    has_ended = batch.run is not None and state_of(batch).is_final
    return LineCounts(batch.total, answered, batch.total - answered if has_ended else failed)


def missing_lines(run: Run) -> MissingLines:
    """The error of these lines, by the final state of the batch's run."""
    if run.state is RunState.CANCELLED:
        return MissingLines("batch_cancelled", "The batch was cancelled before this request was answered.")
    if run.error is not None and run.error.reason == _EXPIRED:
        sentence = "This request could not be answered before the completion window expired."
        return MissingLines("batch_expired", sentence)
    reason = run.error.message if run.error else "The batch has ended."
    return MissingLines("batch_failed", f"This request was not answered: {reason}")


def _ending_as(run: Run) -> BatchState:
    return BatchState.CANCELLING if run.state is RunState.CANCELLED else BatchState.FINALIZING


def _ended_as(run: Run) -> BatchState:
    if run.state is RunState.CANCELLED:
        return BatchState.CANCELLED
    if run.error is None or run.error.reason == _ASKED_ALL:
        return BatchState.COMPLETED
    return BatchState.EXPIRED if run.error.reason == _EXPIRED else BatchState.FAILED
