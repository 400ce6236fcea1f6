"""The body of a request as it comes, for uploads: cut into pieces of a bounded size, never whole."""

import asyncio
from collections.abc import AsyncGenerator

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from services.gateway.errors import BodyCutOff

_PIECE_BYTES = 1024 * 1024
# Who sends nothing for so long has gone, and others wait for the place.
_PATIENCE_SECONDS = 60.0


async def body_chunks(request: Request) -> AsyncGenerator[bytes]:
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                chunk = await anext(stream, None)
        except TimeoutError as error:
            raise HTTPException(408, f"No byte came for {_PATIENCE_SECONDS:.0f} s; send it again.") from error
        except ClientDisconnect as error:
            raise BodyCutOff from error
        if chunk is None:
            return
        yield chunk


def cut(content: bytes) -> list[bytes]:
    """What one message of an upload may carry at most, and the rest in others."""
    return [content[start : start + _PIECE_BYTES] for start in range(0, len(content), _PIECE_BYTES)]


def last_part(file_name: str) -> str:
    """Some browsers send a whole path."""
    return file_name.replace("\\", "/").rpartition("/")[2]
