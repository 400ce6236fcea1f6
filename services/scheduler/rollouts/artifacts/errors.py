"""Errors of artifacts."""

from services.common.errors import DomainError, ErrorKind


class ArtifactRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The artifact is not stored: {problem}"""


class ArtifactNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="ARTIFACT_NOT_FOUND"):
    """The run {run_id} has no artifact {name} of this rollout. List those that it has."""
