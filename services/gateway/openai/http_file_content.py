"""The bytes of a file, all or a range of them, as fast as the client takes them."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from urllib.parse import quote

from fastapi.responses import StreamingResponse

from proctor.v1 import file_service_pb2 as file_pb2
from services.gateway.grpc_files import FileBackend
from services.gateway.http_byte_range import ByteRange, byte_range

_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


async def file_content(files: FileBackend, file: file_pb2.File, range_header: str) -> StreamingResponse:
    """Raises 416 for a range behind the end of the file."""
    asked = byte_range(range_header, file.size_bytes)
    wanted = asked or ByteRange(0, file.size_bytes)
    pieces = files.read(file.file_id, wanted.first)
    # Taken before the answer begins, so that a refusal is an error and not a broken file.
    first = await anext(pieces, file_pb2.ReadFileResponse())
    headers = {
        "Content-Length": str(wanted.length),
        "Content-Disposition": _disposition(file.name),
        # What a file holds never changes.
        "ETag": f'"{file.file_id}"',
        "Accept-Ranges": "bytes",
    }
    if asked:
        headers["Content-Range"] = f"bytes {asked.first}-{asked.end - 1}/{file.size_bytes}"
    return StreamingResponse(
        _bytes(first, pieces, wanted.length),
        status_code=206 if asked else 200,
        media_type="application/octet-stream",
        headers=headers,
    )


async def _bytes(
    first: file_pb2.ReadFileResponse, others: AsyncGenerator[file_pb2.ReadFileResponse], length: int
) -> AsyncIterator[bytes]:
    """So many and no more. Where fewer come, the server breaks the answer off: its length was announced."""
    async with aclosing(others):
        piece: file_pb2.ReadFileResponse | None = first
        while piece is not None and length:
            if data := piece.data[:length]:
                yield data
            length -= len(data)
            piece = await anext(others, None) if length else None


def _disposition(name: str) -> str:
    """The name for those who read ASCII only, and as it is."""
    plain = _UNSAFE_IN_NAMES.sub("_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
