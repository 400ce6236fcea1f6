"""Errors of orders of judges, and of answers that cannot be judged."""

from services.common.errors import DomainError, ErrorKind
from services.scheduler.suites.errors import SuiteError


class InvalidJudgePrompt(ValueError):
    """A document is no judge prompt; the message says why."""


class RunNotEnded(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_FROZEN"):
    """Run {run_id} is {state}. Its answers can be judged once it has ended."""


class NoAnswers(SuiteError, kind=ErrorKind.CONFLICT, reason="ROWS_UNAVAILABLE"):
    """Run {run_id} has no answer that could be judged."""


class NotPaired(SuiteError, kind=ErrorKind.CONFLICT, reason="NOT_COMPARABLE"):
    """Runs {run_id} and {against_run_id} were not asked the same: sample {sample} differs."""


class NoTarget(SuiteError, kind=ErrorKind.INVALID, reason="NO_TARGETS"):
    """Sample {sample} has no target, which the judge prompt {prompt} compares with. Take another prompt."""
