"""State of a batch for each state of its run, with files and without."""

from dataclasses import replace
from datetime import timedelta

import pytest

from proctor.values.run import RunCounts, RunId, RunState, TaskCounts
from proctor.values.scoring import ScoringMethod
from services.scheduler.batches.stored_batch import (
    Batch,
    BatchError,
    BatchFiles,
    BatchId,
    BatchOrder,
    BatchState,
    BatchTimes,
    LineCounts,
    errors_of,
    line_counts,
    missing_lines,
    run_id_of,
    state_of,
    times_of,
)
from services.scheduler.runs.lifecycle.run import Run, RunError
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.uploads.stored_file import FileId
from tests.fakes.scheduler.surroundings import START

ORDER = BatchOrder(FileId("file-1"), "/v1/chat/completions", "24h")
RUN = Run(
    RunId("1"), RunOrder("", "openai/m", dataset_id="file-1"), "ann", "remote", ScoringMethod.GENERATE, START
)
STARTED, ENDED, WRITTEN = (START + timedelta(minutes=minutes) for minutes in (1, 2, 3))
PLANNED = replace(RUN, planned_epoch=1, total=10, started_at=STARTED)
TOO_LATE = RunError("DEADLINE_REACHED", "The completion window is over.")
TOO_BAD = RunError("TOO_MANY_FAILURES", "9 of 10 samples failed.")
NO_MODEL = RunError("MODEL_CANNOT_LOAD", "No worker can load it.")
FILES = BatchFiles(WRITTEN, FileId("file-2"), FileId("file-3"))


def batch_of(run: Run | None, files: BatchFiles | None = None) -> Batch:
    return Batch(BatchId("batch_1"), "ann", ORDER, START, 10 if run else 0, run, files=files)


def over(state: RunState, error: RunError | None = None) -> Run:
    return replace(PLANNED, state=state, error=error, finished_at=ENDED, is_closed=True)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (None, BatchState.FAILED),
        (RUN, BatchState.VALIDATING),
        (replace(RUN, state=RunState.RUNNING), BatchState.VALIDATING),
        (replace(RUN, state=RunState.PAUSED), BatchState.VALIDATING),
        (replace(PLANNED, state=RunState.RUNNING), BatchState.IN_PROGRESS),
        (replace(PLANNED, state=RunState.PENDING), BatchState.IN_PROGRESS),
        (replace(PLANNED, state=RunState.PAUSED), BatchState.IN_PROGRESS),
        (replace(PLANNED, state=RunState.RUNNING, is_closing=True), BatchState.IN_PROGRESS),
        (over(RunState.COMPLETED), BatchState.FINALIZING),
        (over(RunState.FAILED, TOO_LATE), BatchState.FINALIZING),
        (over(RunState.FAILED, NO_MODEL), BatchState.FINALIZING),
        (over(RunState.CANCELLED), BatchState.CANCELLING),
        (replace(RUN, state=RunState.CANCELLED, finished_at=ENDED), BatchState.CANCELLING),
    ],
)
def test_state_is_that_of_its_run_until_the_files_are_written(run: Run | None, expected: BatchState) -> None:
    assert state_of(batch_of(run)) is expected


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (over(RunState.COMPLETED), BatchState.COMPLETED),
        (over(RunState.FAILED, TOO_BAD), BatchState.COMPLETED),
        (over(RunState.FAILED, TOO_LATE), BatchState.EXPIRED),
        (over(RunState.FAILED, NO_MODEL), BatchState.FAILED),
        (over(RunState.CANCELLED), BatchState.CANCELLED),
    ],
)
def test_state_is_final_once_the_files_are_written(run: Run, expected: BatchState) -> None:
    batch = batch_of(run, FILES)
    assert (state_of(batch), state_of(batch).is_final) == (expected, True)


@pytest.mark.parametrize(
    ("run", "files", "expected"),
    [
        (None, None, BatchTimes(failed_at=START)),
        (RUN, None, BatchTimes()),
        (replace(RUN, state=RunState.RUNNING, started_at=STARTED), None, BatchTimes()),
        (replace(PLANNED, state=RunState.RUNNING), None, BatchTimes(in_progress_at=STARTED)),
        (over(RunState.COMPLETED), None, BatchTimes(STARTED, ENDED)),
        (over(RunState.COMPLETED), FILES, BatchTimes(STARTED, ENDED, completed_at=WRITTEN)),
        (over(RunState.FAILED, TOO_BAD), FILES, BatchTimes(STARTED, ENDED, completed_at=WRITTEN)),
        (over(RunState.FAILED, NO_MODEL), FILES, BatchTimes(STARTED, ENDED, failed_at=WRITTEN)),
        (over(RunState.FAILED, TOO_LATE), FILES, BatchTimes(STARTED, ENDED, expired_at=WRITTEN)),
        (over(RunState.CANCELLED), None, BatchTimes(STARTED, cancelling_at=ENDED)),
        (over(RunState.CANCELLED), FILES, BatchTimes(STARTED, cancelling_at=ENDED, cancelled_at=WRITTEN)),
    ],
)
def test_each_state_that_it_was_in_has_its_time(
    run: Run | None, files: BatchFiles | None, expected: BatchTimes
) -> None:
    batch = batch_of(run, files)
    always = {"created_at": batch.created_at, "expires_at": batch.created_at + timedelta(hours=24)}
    assert times_of(batch) == replace(expected, **always)


def test_lines_without_an_answer_have_failed_once_it_has_ended() -> None:
    counts = RunCounts(1, (TaskCounts("rows", recorded=7, failed=2),))
    going, ended = (
        batch_of(replace(PLANNED, state=RunState.RUNNING)),
        batch_of(over(RunState.CANCELLED), FILES),
    )
    assert line_counts(going, None) == LineCounts(10, 0, 0)
    assert line_counts(going, counts) == LineCounts(10, 5, 2)
    assert line_counts(ended, counts) == LineCounts(10, 5, 5)
    assert line_counts(ended, None) == LineCounts(10, 0, 10)
    assert line_counts(batch_of(None), None) == LineCounts(0, 0, 0)


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (over(RunState.CANCELLED), "batch_cancelled"),
        (over(RunState.FAILED, TOO_LATE), "batch_expired"),
        (over(RunState.FAILED, NO_MODEL), "batch_failed"),
    ],
)
def test_lines_that_were_not_asked_say_why(run: Run, code: str) -> None:
    missing = missing_lines(run)
    assert (missing.code, missing.message[-1]) == (code, ".")


def test_batch_whose_run_could_not_be_served_says_why() -> None:
    run = over(RunState.FAILED, NO_MODEL)
    assert errors_of(batch_of(run, FILES)) == (BatchError("model_cannot_load", "No worker can load it."),)
    assert errors_of(batch_of(run)) == ()
    assert errors_of(batch_of(over(RunState.FAILED, TOO_BAD), FILES)) == ()


def test_run_of_a_batch_has_its_digits() -> None:
    assert run_id_of(BatchId("batch_" + "0a" * 16)) == "0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a"
