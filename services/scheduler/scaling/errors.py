"""Errors of scaling."""

from services.common.errors import DependencyUnavailable, DomainError, ErrorKind


class PodsNotMarked(DomainError, kind=ErrorKind.UNAVAILABLE, reason="DEPENDENCY_UNAVAILABLE"):
    """Kubernetes at {url} marks no pods: {problem}. Correct it, or set PROCTOR_SCHEDULER_MARK_PODS=false."""


class DemandNotComputed(DependencyUnavailable):
    """No scheduler has computed in the last minute what pool {pool} needs. See the log of their leader."""
