"""The bytes of an exported run, all or a range of them, as results send them and the client takes them.

Only what stays as it is has an ETag and can be gone on with. To know a range of a file is to know its length:
results measure it once and remember.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from proctor.v1 import export_service_pb2 as export_pb2
from services.gateway.backends.results import ResultsBackend
from services.gateway.http.downloads import ByteRange, ContentConditions, byte_range

_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class _Begun:
    """A file whose first piece was taken, so that a refusal is a problem and not a broken file."""

    head: export_pb2.ExportRunResponse
    rest: AsyncGenerator[export_pb2.ExportRunResponse]

    @property
    def tag(self) -> str:
        return f'"{self.head.content_tag}"' if self.head.content_tag else ""

    @property
    def total_bytes(self) -> int | None:
        return self.head.total_bytes if self.head.HasField("total_bytes") else None


async def exported_file(
    results: ResultsBackend, request: export_pb2.ExportRunRequest, conditions: ContentConditions
) -> Response:
    """Raises 416 for a range behind the end of the file."""
    request.with_total = bool(conditions.range)
    whole = await _begin(results, request)
    try:
        if conditions.has(whole.tag):
            await whole.rest.aclose()
            return Response(status_code=304, headers={"ETag": whole.tag} if whole.tag else {})
        asked = _asked(whole, conditions)
        begun = await _begin_at(results, request, whole, asked.first) if asked else whole
    except BaseException:
        await whole.rest.aclose()
        raise
    return _response(begun, asked)


async def _begin(results: ResultsBackend, request: export_pb2.ExportRunRequest) -> _Begun:
    pieces = results.export_run(request)
    return _Begun(await anext(pieces, export_pb2.ExportRunResponse()), pieces)


def _asked(whole: _Begun, conditions: ContentConditions) -> ByteRange | None:
    total = whole.total_bytes
    return byte_range(conditions.range_of(whole.tag), total) if whole.tag and total is not None else None


async def _begin_at(
    results: ResultsBackend, request: export_pb2.ExportRunRequest, whole: _Begun, first_byte: int
) -> _Begun:
    if not first_byte:
        return whole
    await whole.rest.aclose()
    request.first_byte = first_byte
    begun = await _begin(results, request)
    if begun.tag != whole.tag:
        await begun.rest.aclose()
        raise HTTPException(409, "The file has changed since; ask for it without a range.")
    return begun


def _response(begun: _Begun, asked: ByteRange | None) -> StreamingResponse:
    total, head = begun.total_bytes, begun.head
    name = _UNSAFE_IN_NAMES.sub("_", head.file_name or "export")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if begun.tag:
        headers |= {"ETag": begun.tag, "Accept-Ranges": "bytes"}
    if asked:
        headers["Content-Range"] = f"bytes {asked.first}-{asked.end - 1}/{total}"
    length = asked.length if asked else total
    if length is not None:
        headers["Content-Length"] = str(length)
    return StreamingResponse(
        _bytes(begun, length),
        status_code=206 if asked else 200,
        media_type=head.media_type or "application/octet-stream",
        headers=headers,
    )


async def _bytes(begun: _Begun, length: int | None) -> AsyncIterator[bytes]:
    """Not more than `length`. Where fewer come, the answer is broken off: its length was announced."""
    async with aclosing(begun.rest) as rest:
        piece: export_pb2.ExportRunResponse | None = begun.head
        while piece is not None and length != 0:
            if data := piece.data[:length]:
                yield data
            length = None if length is None else length - len(data)
            piece = None if length == 0 else await anext(rest, None)
