"""Files of the OpenAI protocol: upload, list, show, download and delete."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response
from starlette.requests import Request

from proctor.v1 import file_service_pb2 as file_pb2
from proctor.values.openai import MAX_EXPIRY_SECONDS, MIN_EXPIRY_SECONDS
from proctor.wire.enums import value_of
from services.gateway.api.files.upload import ANCHOR, FILE_FIELD, PURPOSE, SECONDS, upload_requests
from services.gateway.api.openai import Deleted, FileObject, OpenAiPage, file_object, page_of
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.downloads import (
    ContentConditions,
    FileHeaders,
    attachment,
    begin,
    byte_range,
    file_response,
)
from services.gateway.http.parameters import Text
from services.gateway.http.paths import FILES
from services.gateway.http.problem import Described, openai_problems

# FastAPI cannot derive the description of a streamed body.
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
                            "minimum": MIN_EXPIRY_SECONDS,
                            "maximum": MAX_EXPIRY_SECONDS,
                        },
                        FILE_FIELD: {"type": "string", "format": "binary", "description": "JSONL"},
                    },
                    "dependentRequired": {ANCHOR: [SECONDS], SECONDS: [ANCHOR]},
                    "additionalProperties": False,
                }
            }
        },
    }
}
_CONTENT: Described = {
    200: {"description": "The file", "content": {"application/octet-stream": {}}},
    206: {"description": "The requested range", "content": {"application/octet-stream": {}}},
    304: {"description": "The client has the file"},
}

FileIdPath = Annotated[Text, Path(description='"file-…"', max_length=255)]

router = APIRouter(tags=["openai"])
_ONE = f"{FILES}/{{file_id}}"


@dataclass(frozen=True, slots=True)
class FileParameters:
    """Filter, order and page of a list of files."""

    purpose: Annotated[
        Literal["batch", "batch_output", ""], Query(description="Only files with this purpose")
    ] = ""
    # The range and the default of OpenAI's protocol.
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000
    order: Annotated[Literal["asc", "desc"], Query(description="desc: newest first")] = "desc"
    after: Annotated[Text, Query(max_length=255, description="last_id of the previous page")] = ""

    def to_proto(self) -> file_pb2.ListFilesRequest:
        return file_pb2.ListFilesRequest(
            page_size=self.limit,
            after_file_id=self.after,
            purpose=value_of(file_pb2.FilePurpose, self.purpose, unset=""),
            is_ascending=self.order == "asc",
        )


async def _named_file(scheduler: SchedulerCalls, file_id: FileIdPath) -> file_pb2.File:
    return (await scheduler.files.GetFile(file_pb2.GetFileRequest(file_id=file_id))).file


NamedFile = Annotated[file_pb2.File, Depends(_named_file)]


@router.post(
    FILES,
    responses=openai_problems(400, 408, 409, 413, 503),
    openapi_extra=_BODY,
    summary="Upload the lines of a batch",
)
async def upload(
    scheduler: SchedulerCalls, user: User, request: Request, request_id: RequestId
) -> FileObject:
    header = file_pb2.FileHeader(user=user, request_id=request_id)
    async with aclosing(upload_requests(request, header)) as requests:
        return file_object(FileObject, (await scheduler.files.UploadFile(requests)).file)


@router.get(FILES, responses=openai_problems(400, 404, 503), summary="List files")
async def list_files(
    scheduler: SchedulerCalls, query: Annotated[FileParameters, Depends()]
) -> OpenAiPage[FileObject]:
    listed = await scheduler.files.ListFiles(query.to_proto())
    return page_of([file_object(FileObject, file) for file in listed.files], has_more=listed.has_more)


@router.get(_ONE, responses=openai_problems(404, 503), summary="One file")
async def get(file: NamedFile) -> FileObject:
    return file_object(FileObject, file)


@router.delete(_ONE, responses=openai_problems(404, 409, 503), summary="Delete a file that no batch uses")
async def delete(scheduler: SchedulerCalls, file_id: FileIdPath) -> Deleted:
    await scheduler.files.DeleteFile(file_pb2.DeleteFileRequest(file_id=file_id))
    return Deleted(id=file_id)


@router.get(
    f"{_ONE}/content",
    response_class=Response,
    responses=_CONTENT | openai_problems(404, 416, 503),
    summary="The content of a file",
)
async def content(
    scheduler: SchedulerCalls, file: NamedFile, conditions: Annotated[ContentConditions, Depends()]
) -> Response:
    """Raises 416 for a range outside the file."""
    # The content of a file is immutable.
    tag = f'"{file.file_id}"'
    if conditions.has(tag):
        return Response(status_code=304, headers={"ETag": tag})
    requested = byte_range(conditions.range_of(tag), file.size_bytes)
    first_byte = requested.first if requested else 0
    chunks = scheduler.files.ReadFile(file_pb2.ReadFileRequest(file_id=file.file_id, first_byte=first_byte))
    download = await begin(chunks, file_pb2.ReadFileResponse())
    headers = FileHeaders(attachment(file.name), tag=tag, total_bytes=file.size_bytes)
    return file_response(download, headers, requested)
