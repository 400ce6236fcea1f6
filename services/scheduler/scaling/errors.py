"""Errors of scaling."""

from services.common.errors import DependencyUnavailable, DomainError, ErrorKind


class DeletionCostNotSet(DomainError, kind=ErrorKind.UNAVAILABLE):
    """Kubernetes at {url} fails: {problem}. Correct it, or set PROCTOR_SCHEDULER_SET_DELETION_COSTS=false."""


class DemandNotComputed(DependencyUnavailable):
    """No scheduler has computed in the last minute what pool {pool} needs. See the log of their leader."""
