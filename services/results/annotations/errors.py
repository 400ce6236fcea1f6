"""Errors of annotations."""

from services.common.errors import DomainError, ErrorKind


class PairsNotAnnotated(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Run {run_id} compares pairs of answers; name a judge of single answers, or the judged run."""


class AnswerNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="OUTCOME_NOT_FOUND"):
    """Run {run_id} has no answer to sample {sample}, rollout {rollout}, so nothing was annotated."""
