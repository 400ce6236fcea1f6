"""Errors of marked and of sorted answers."""

from services.common.errors import DomainError, ErrorKind


class OutcomeNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="OUTCOME_NOT_FOUND"):
    """Run {run_id} has no outcome for sample {sample}, rollout {rollout}, so no mark was changed."""


class RowNotFound(DomainError, kind=ErrorKind.INVALID, reason="ROW_NOT_FOUND"):
    """Run {run_id} has no row {row_id!r}, so no mark was changed."""


class FailureNotMarked(DomainError, kind=ErrorKind.CONFLICT, reason="OUTCOME_IS_FAILURE"):
    """Sample {sample}, rollout {rollout} of run {run_id} is a failure and no answer; nothing was marked."""


class NoJudgingRun(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Run {run_id} has no verdicts on single answers: name a judging run."""


class JudgedApart(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Runs {run_id} and {against_run_id} judge other samples, or by other questions: name two alike."""


class TooManyToSort(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Run {run_id} can have more than {limit} outcomes, too many to sort: choose one task, or only filter."""
