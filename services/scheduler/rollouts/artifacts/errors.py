"""Errors of artifacts."""

from services.common.errors import DomainError, ErrorKind


class ArtifactRefused(DomainError):
    """The artifact is not stored: {problem}"""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class ArtifactNotFound(DomainError):
    """The run {run_id} has no artifact {name} of this rollout. List those that it has."""

    kind = ErrorKind.NOT_FOUND
    reason = "ARTIFACT_NOT_FOUND"
