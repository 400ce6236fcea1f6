"""The bytes of a file, all or a range of them, as fast as the client takes them.
Files of the OpenAI protocol over HTTP: upload, list, look at, delete.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response, StreamingResponse
from starlette.requests import Request

from proctor.v1 import file_service_pb2 as file_pb2
from services.gateway.api.files.upload import ANCHOR, FILE_FIELD, PURPOSE, SECONDS, FileUpload, file_pieces
from services.gateway.api.openai.idempotency import RequestId
from services.gateway.api.openai.schemas import (
    LONGEST_EXPIRY_SECONDS,
    SHORTEST_EXPIRY_SECONDS,
    Deleted,
    FileObject,
    Page,
    file_object,
)
from services.gateway.auth.identity import Identity
from services.gateway.backends.scheduler import FileBackend
from services.gateway.errors.http_problem import Described
from services.gateway.errors.openai_errors import openai_problems
from services.gateway.http.downloads import ByteRange, ContentConditions, byte_range
from services.gateway.http.fields import Text
from services.gateway.paths import FILES

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


_PURPOSES = {
    "batch": file_pb2.FILE_PURPOSE_BATCH,
    "batch_output": file_pb2.FILE_PURPOSE_BATCH_OUTPUT,
}
# A body that is read as it comes has no signature that FastAPI could derive this from.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [PURPOSE, FILE_FIELD],
                    "properties": {
                        PURPOSE: {"type": "string", "enum": ["batch"]},
                        ANCHOR: {"type": "string", "enum": ["created_at"]},
                        SECONDS: {
                            "type": "integer",
                            "minimum": SHORTEST_EXPIRY_SECONDS,
                            "maximum": LONGEST_EXPIRY_SECONDS,
                        },
                        FILE_FIELD: {"type": "string", "format": "binary", "description": "JSONL"},
                    },
                }
            }
        },
    }
}
_CONTENT: Described = {
    200: {"description": "The file", "content": {"application/octet-stream": {}}},
    206: {"description": "The range that was asked for"},
    304: {"description": "The file that the client has"},
}

FileId = Annotated[Text, Path(description='"file-…"', max_length=255)]


class FileQuery:
    """Filter, order and page of a list of files."""

    def __init__(
        self,
        purpose: Annotated[
            Literal["batch", "batch_output", ""], Query(description="Only files of this one")
        ] = "",
        limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
        order: Annotated[Literal["asc", "desc"], Query(description="desc: newest first")] = "desc",
        after: Annotated[Text, Query(max_length=255, description="last_id of the page before")] = "",
    ) -> None:
        self.request = file_pb2.ListFilesRequest(
            page_size=limit,
            after_file_id=after,
            purpose=_PURPOSES.get(purpose, file_pb2.FILE_PURPOSE_UNSPECIFIED),
            is_ascending=order == "asc",
        )


class FileApi:
    """The handlers, with what they ask."""

    def __init__(self, files: FileBackend, identity: Identity) -> None:
        self._files = files
        self._identity = identity

    def router(self) -> APIRouter:
        router = APIRouter(tags=["openai"])
        router.post(
            FILES,
            responses=openai_problems(400, 408, 413, 503),
            openapi_extra=_BODY,
            summary="Upload the lines of a batch",
        )(self.upload)
        router.get(FILES, responses=openai_problems(400, 404, 503), summary="List files")(self.list_files)
        one, path = openai_problems(404, 503), f"{FILES}/{{file_id}}"
        router.get(path, responses=one, summary="One file")(self.get)
        router.delete(
            path, responses=openai_problems(404, 409, 503), summary="Delete one that no batch uses"
        )(self.delete)
        router.get(
            f"{path}/content",
            response_class=Response,
            responses=_CONTENT | openai_problems(404, 416, 503),
            summary="What is in a file, byte by byte",
        )(self.content)
        return router

    async def upload(self, request: Request, request_id: RequestId) -> FileObject:
        upload = FileUpload(await self._identity.user(request), request_id)
        async with aclosing(file_pieces(request, upload)) as pieces:
            return file_object(await self._files.upload(pieces))

    async def list_files(self, query: Annotated[FileQuery, Depends()]) -> Page[FileObject]:
        listed = await self._files.list_page(query.request)
        files = [file_object(file) for file in listed.files]
        return Page(
            data=files,
            first_id=files[0].id if files else None,
            last_id=files[-1].id if files else None,
            has_more=listed.has_more,
        )

    async def get(self, file_id: FileId) -> FileObject:
        return file_object(await self._files.get(file_id))

    async def delete(self, file_id: FileId) -> Deleted:
        await self._files.delete(file_id)
        return Deleted(id=file_id)

    async def content(self, file_id: FileId, conditions: Annotated[ContentConditions, Depends()]) -> Response:
        file = await self._files.get(file_id)
        tag = f'"{file_id}"'
        if conditions.has(tag):
            return Response(status_code=304, headers={"ETag": tag})
        return await file_content(self._files, file, conditions.range_of(tag))
