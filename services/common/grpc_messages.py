"""Requests on gRPC become messages; what is none is refused in a sentence, not by a fault of the library."""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from services.common.errors import DomainError, ErrorKind

M = TypeVar("M", bound=Message)


class MalformedRequest(DomainError):
    """The request is no {expected}; make it from the contracts in protos/."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


def parsed(kind: type[M], request: bytes) -> M:
    try:
        return kind.FromString(request)
    except DecodeError as error:
        raise MalformedRequest(expected=kind.DESCRIPTOR.name) from error
