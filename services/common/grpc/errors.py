"""Errors on gRPC, in both directions.

DomainError
├── kind INVALID      → INVALID_ARGUMENT
├── kind NOT_FOUND    → NOT_FOUND
├── kind CONFLICT     → FAILED_PRECONDITION
├── kind EXHAUSTED    → RESOURCE_EXHAUSTED
├── kind UNAVAILABLE  → UNAVAILABLE
├── kind UNAUTHENTICATED → UNAUTHENTICATED
├── kind FORBIDDEN    → PERMISSION_DENIED
└── kind INTERNAL     → INTERNAL
anything else         → INTERNAL, masked, with an incident id that the log explains
"""

from typing import TypeVar

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from services.common.bounded_messages import TooManyItems, TooManyParts, check_parts, read_message
from services.common.checked_fields import invalid_field
from services.common.errors import DomainError, ErrorKind, MessageTooLarge, RemoteError

ERROR_DOMAIN = "proctor"

CODES: dict[ErrorKind, int] = {
    ErrorKind.INVALID: code_pb2.INVALID_ARGUMENT,
    ErrorKind.NOT_FOUND: code_pb2.NOT_FOUND,
    ErrorKind.CONFLICT: code_pb2.FAILED_PRECONDITION,
    ErrorKind.EXHAUSTED: code_pb2.RESOURCE_EXHAUSTED,
    ErrorKind.UNAVAILABLE: code_pb2.UNAVAILABLE,
    ErrorKind.UNAUTHENTICATED: code_pb2.UNAUTHENTICATED,
    ErrorKind.FORBIDDEN: code_pb2.PERMISSION_DENIED,
    ErrorKind.INTERNAL: code_pb2.INTERNAL,
}
_KINDS: dict[int, ErrorKind] = {code: kind for kind, code in CODES.items()}
# No kind has this code. A dependency that is too slow is reported as unavailable.
_KINDS[code_pb2.DEADLINE_EXCEEDED] = ErrorKind.UNAVAILABLE

# The message goes out twice, as text and, in base64, in the details. Beyond 8 KiB gRPC drops the
# header, and the caller sees an error without a reason.
_MESSAGE_BYTES = 1200
_FACT_BYTES = 1000
M = TypeVar("M", bound=Message)


def status_of(error: DomainError) -> status_pb2.Status:
    """The wire form of a domain error. It travels in a header, which must stay below 8 KiB."""
    facts = {name: _bounded(str(value), _FACT_BYTES) for name, value in error.facts.items()}
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=ERROR_DOMAIN, metadata=facts)
    detail = any_pb2.Any()
    detail.Pack(info)
    message = _bounded(error.message, _MESSAGE_BYTES)
    return status_pb2.Status(code=CODES[error.kind], message=message, details=[detail])


def _bounded(text: str, max_bytes: int) -> str:
    """The beginning and the end of what is too long."""
    content = text.encode(errors="replace")
    if len(content) <= max_bytes:
        return text
    half = max_bytes // 2 - 2
    # A cut may go through a character of several bytes.
    return f"{content[:half].decode(errors='ignore')}…{content[-half:].decode(errors='ignore')}"


def masked_status(incident: str) -> status_pb2.Status:
    """The wire form of an unexpected error: details go to the log only."""
    error = RemoteError(
        ErrorKind.INTERNAL,
        "INTERNAL",
        f"Something went wrong inside (incident {incident}); the log of the service says what.",
        {"incident": incident},
    )
    return status_of(error)


def remote_error(error: grpc.aio.AioRpcError) -> RemoteError:
    """A failed call as a domain error, with reason and facts as the other side gave them."""
    kind = _KINDS.get(error.code().value[0], ErrorKind.INTERNAL)
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # AioRpcError has all that is asked of a Call
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return RemoteError(kind, info.reason, error.details() or "", dict(info.metadata))
    if kind is ErrorKind.EXHAUSTED:
        # Our own errors of this kind have a reason; gRPC's error for a message over its limit has none.
        return MessageTooLarge(f"A message is too large to be sent: {error.details()}")
    reason = "DEPENDENCY_UNAVAILABLE" if kind is ErrorKind.UNAVAILABLE else "INTERNAL"
    return RemoteError(kind, reason, error.details() or error.code().name, {})


class MalformedRequest(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The request is not of the type {expected}; make it from the contracts in protos/."""


class RequestOfManyParts(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The request has more than {limit} fields and items; send several smaller ones."""


def parsed(kind: type[M], request: bytes, *, max_parts: int | None = None) -> M:
    """`max_parts`: of fields and items of a large request, which are counted before it is parsed."""
    try:
        if max_parts is not None:
            check_parts(kind, request, max_parts)
        return read_message(kind, request)
    except TooManyItems as error:
        # `from None`: a chain of errors would keep the message in memory until a garbage collection.
        raise invalid_field(error.field, f"must have at most {error.limit} items") from None
    except TooManyParts as error:
        raise RequestOfManyParts(limit=error.limit) from None
    except DecodeError as error:
        raise MalformedRequest(expected=kind.DESCRIPTOR.name) from error
