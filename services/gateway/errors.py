"""What the gateway refuses by itself; all else is refused by the service that a request is for."""

from services.common.errors import DomainError, ErrorKind


class GatewayError(DomainError):
    """The gateway refused the request."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class InvalidUserName(GatewayError):
    """The user name in X-Proctor-User must be 1 to 128 printable characters."""


class MalformedRequest(GatewayError):
    """The request is no {expected}; make it from the contracts in protos/."""


class RunNotFound(GatewayError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"
