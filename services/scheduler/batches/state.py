"""Where a batch stands, told from its run and from whether its files are written. Only here is it known."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from services.scheduler.batches.stored_batch import Batch, BatchProblem
from services.scheduler.runs.run import Run, RunState
from services.scheduler.runs.run_counts import RunCounts

_EXPIRED = "DEADLINE_REACHED"
# Every line was asked then, and each failure is in the error file.
_ASKED_ALL = "TOO_MANY_FAILURES"


class BatchState(StrEnum):
    """In the words of the protocol."""

    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in _FINAL


_FINAL = frozenset({BatchState.FAILED, BatchState.COMPLETED, BatchState.EXPIRED, BatchState.CANCELLED})


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When it came into a state; None of those that it was not in."""

    in_progress_at: datetime | None = None
    finalizing_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    expired_at: datetime | None = None
    cancelling_at: datetime | None = None
    cancelled_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Lines; `failed` are those with a failure, and once it has ended all without an answer."""

    total: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class MissingLines:
    """What the error file says of lines that were not asked."""

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
    if run is None:
        return BatchTimes(failed_at=batch.created_at)
    ended_at = batch.files.finalized_at if batch.files else None
    was_cancelled = run.state is RunState.CANCELLED
    return BatchTimes(
        in_progress_at=run.started_at if run.is_planned else None,
        finalizing_at=None if was_cancelled else run.finished_at,
        completed_at=ended_at if state is BatchState.COMPLETED else None,
        failed_at=ended_at if state is BatchState.FAILED else None,
        expired_at=ended_at if state is BatchState.EXPIRED else None,
        cancelling_at=run.finished_at if was_cancelled else None,
        cancelled_at=ended_at if was_cancelled else None,
    )


def problems_of(batch: Batch) -> Sequence[BatchProblem]:
    run = batch.run
    if run is None or run.error is None or state_of(batch) is not BatchState.FAILED:
        return batch.problems
    return (BatchProblem(run.error.reason.lower(), run.error.message),)


def line_counts(batch: Batch, counts: RunCounts | None) -> LineCounts:
    answered = counts.recorded - counts.failed if counts else 0
    failed = counts.failed if counts else 0
    has_ended = batch.run is not None and state_of(batch).is_final
    return LineCounts(batch.total, answered, batch.total - answered if has_ended else failed)


def missing_lines(run: Run) -> MissingLines:
    """Of a run that has ended."""
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
