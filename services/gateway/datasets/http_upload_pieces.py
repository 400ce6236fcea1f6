"""The file in a request's body, as the pieces of an upload: passed on as they come, never whole."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.errors import BodyCutOff, MalformedForm, NoUploadName
from services.gateway.http_form_parts import FORM, FormPart, form_parts

FILE_FIELD = "file"
_PIECE_BYTES = 1024 * 1024
_MAX_NAME = 255
# Who sends nothing for so long has gone, and others wait for the place.
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Upload:
    """What is known of an upload before its body. A `name` wins over the one in the form."""

    name: str
    user: str
    format: dataset_pb2.DatasetFormat.ValueType
    request_id: str

    def header(self, file_name: str) -> dataset_pb2.UploadDatasetRequest:
        name = self.name or _last_part(file_name)
        if not 0 < len(name) <= _MAX_NAME:
            raise NoUploadName
        header = dataset_pb2.DatasetHeader(
            name=name, user=self.user, format=self.format, request_id=self.request_id
        )
        return dataset_pb2.UploadDatasetRequest(header=header)


async def upload_pieces(request: Request, upload: Upload) -> AsyncGenerator[dataset_pb2.UploadDatasetRequest]:
    """The end comes only after a body that is whole and holds one file and no more."""
    async with aclosing(_chunks(request)) as body:
        content_type = request.headers.get("Content-Type", "")
        if content_type.partition(";")[0].strip().lower() == FORM:
            async for piece in _of_form(content_type, body, upload):
                yield piece
        else:
            yield upload.header("")
            async for chunk in body:
                for piece in _cut(chunk):
                    yield piece
    yield dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd())


async def _of_form(
    content_type: str, body: AsyncIterator[bytes], upload: Upload
) -> AsyncIterator[dataset_pb2.UploadDatasetRequest]:
    has_file = False
    async for found in form_parts(content_type, body):
        if isinstance(found, FormPart):
            _refuse_other(found, has_file=has_file)
            has_file = True
            yield upload.header(found.file_name or "")
        else:
            for piece in _cut(found):
                yield piece
    if not has_file:
        raise MalformedForm(problem=f"it has no field {FILE_FIELD}")


def _refuse_other(part: FormPart, *, has_file: bool) -> None:
    if part.name != FILE_FIELD:
        raise MalformedForm(problem=f"it has a field {part.name!r:.80}; {FILE_FIELD} is the only one")
    if has_file:
        raise MalformedForm(problem=f"it has more than one {FILE_FIELD}")


async def _chunks(request: Request) -> AsyncGenerator[bytes]:
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


def _cut(content: bytes) -> list[dataset_pb2.UploadDatasetRequest]:
    return [
        dataset_pb2.UploadDatasetRequest(content=content[start : start + _PIECE_BYTES])
        for start in range(0, len(content), _PIECE_BYTES)
    ]


def _last_part(file_name: str) -> str:
    """Some browsers send a whole path."""
    return file_name.replace("\\", "/").rpartition("/")[2]
