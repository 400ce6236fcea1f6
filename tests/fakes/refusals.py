"""The refusal of a call by a fake service, and the one that a real service gave."""

from collections.abc import Awaitable

import grpc
import pytest

from services.common.errors import ErrorKind, RemoteError
from services.common.grpc.errors import remote_error


def refused(kind: ErrorKind, reason: str, message: str, **facts: str) -> RemoteError:
    return RemoteError(kind, reason, message, facts)


async def refusal_of(call: Awaitable[object]) -> tuple[str, str]:
    """Reason and sentence."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = remote_error(caught.value)
    return error.reason, error.message
