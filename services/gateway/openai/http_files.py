"""Files of the OpenAI protocol over HTTP: upload, list, look at, delete."""

from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response
from starlette.requests import Request

from proctor.v1 import file_service_pb2 as file_pb2
from services.gateway.grpc_files import FileBackend
from services.gateway.http_content_conditions import ContentConditions
from services.gateway.http_identity import Identity
from services.gateway.http_paths import FILES
from services.gateway.http_problem_bodies import Described
from services.gateway.http_text import Text
from services.gateway.openai.http_file_content import file_content
from services.gateway.openai.http_file_pieces import (
    ANCHOR,
    FILE_FIELD,
    PURPOSE,
    SECONDS,
    FileUpload,
    file_pieces,
)
from services.gateway.openai.http_openai_bodies import (
    LONGEST_EXPIRY_SECONDS,
    SHORTEST_EXPIRY_SECONDS,
    Deleted,
    FileObject,
    Page,
)
from services.gateway.openai.http_openai_errors import openai_problems
from services.gateway.openai.http_request_id import RequestId
from services.gateway.openai.http_shown_objects import file_object

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
