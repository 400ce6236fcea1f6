"""Errors that a call of the client raises, with the reason and the sentence of the service.

ClientError
├── Refused       the request is not acceptable as it is
│   ├── NotAllowed  no API key, an unknown one, or a caller who may not do this
│   └── NotFound  something that the request names does not exist
├── Unreachable   the gateway, or a service behind it, does not answer; a retry may help
└── InternalError  an internal error of a service
"""

from collections.abc import Mapping

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

# Part of BoringSSL's message about a certificate.
_NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"
_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
# A gateway that stops cancels what it still serves.
_OUTAGES = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})
# Invalid arguments for a service; for a user, something that does not exist.
_UNKNOWN_NAMES = frozenset(
    {"UNKNOWN_SUITE", "UNKNOWN_TASK", "UNKNOWN_MODEL", "UNKNOWN_PROVIDER", "UNKNOWN_METRIC", "ROW_NOT_FOUND"}
)


class ClientError(Exception):
    """`reason` is a name of ErrorReason without its prefix, or empty."""

    def __init__(self, message: str, reason: str = "", facts: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.facts = dict(facts or {})


class Refused(ClientError):
    """The request is not acceptable as it is: for a service, or already for the client itself."""

    def __init__(
        self, message: str, reason: str = "INVALID_PARAMETER", facts: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, reason, facts)


class NotFound(Refused):
    """Something that the request names does not exist."""


class NotAllowed(Refused):
    """The caller has no API key or an unknown one, or may not do this."""


class Unreachable(ClientError):
    """No answer; a retry may help."""


class InternalError(ClientError):
    """An internal error of a service."""


def client_error(error: grpc.aio.AioRpcError | TimeoutError, address: str) -> ClientError:
    if isinstance(error, TimeoutError):
        return _too_late(address)
    reason, facts = error_info(error)
    code = error.code()
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return _too_late(address)
    if code == grpc.StatusCode.UNAVAILABLE and _NOT_TRUSTED in (error.details() or ""):
        return Unreachable(
            f"The certificate of {address} is not trusted here: "
            "name the file of its authority in SSL_CERT_FILE."
        )
    if code == grpc.StatusCode.UNAVAILABLE and not reason:
        return Unreachable(
            f"No gateway answers at {address}: start one with `proctor up`, or name another with --gateway "
            "(PROCTOR_GATEWAY)."
        )
    return _kind(code, reason)(error.details() or code.name, reason, facts)


def _too_late(address: str) -> Unreachable:
    return Unreachable(f"The gateway at {address} did not answer in time.", "DEADLINE_EXCEEDED")


def error_info(error: grpc.aio.AioRpcError) -> tuple[str, dict[str, str]]:
    """The reason and the facts of google.rpc.ErrorInfo; empty if the error has none."""
    try:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]  # AioRpcError has all that is asked of a Call
    except ValueError:
        return "", {}
    info = error_details_pb2.ErrorInfo()
    for detail in status.details if status else ():
        if detail.Unpack(info):
            return info.reason.removeprefix("ERROR_REASON_"), dict(info.metadata)
    return "", {}


def _kind(code: grpc.StatusCode, reason: str) -> type[ClientError]:
    if code == grpc.StatusCode.NOT_FOUND or reason in _UNKNOWN_NAMES:
        return NotFound
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return NotAllowed
    if code in _REFUSALS:
        return Refused
    return Unreachable if code in _OUTAGES else InternalError
