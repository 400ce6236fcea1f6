"""What a fake service refuses a call with."""

from services.common.errors import ErrorKind, RemoteError


def refused(kind: ErrorKind, reason: str, message: str, **facts: str) -> RemoteError:
    return RemoteError(kind, reason, message, facts)
