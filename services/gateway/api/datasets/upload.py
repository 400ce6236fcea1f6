"""The file in a request's body, as the pieces of an upload: passed on as they come, never whole."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from starlette.requests import Request

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.errors.gateway_errors import MalformedForm, NoUploadName
from services.gateway.http.uploads import FORM, FormPart, body_chunks, cut, form_parts, last_part

FILE_FIELD = "file"
_MAX_NAME = 255


@dataclass(frozen=True, slots=True)
class Upload:
    """What is known of an upload before its body. A `name` wins over the one in the form."""

    name: str
    user: str
    format: dataset_pb2.DatasetFormat.ValueType
    request_id: str

    def header(self, file_name: str) -> dataset_pb2.UploadDatasetRequest:
        name = self.name or last_part(file_name)
        if not 0 < len(name) <= _MAX_NAME:
            raise NoUploadName
        header = dataset_pb2.DatasetHeader(
            name=name, user=self.user, format=self.format, request_id=self.request_id
        )
        return dataset_pb2.UploadDatasetRequest(header=header)


async def upload_pieces(request: Request, upload: Upload) -> AsyncGenerator[dataset_pb2.UploadDatasetRequest]:
    """The end comes only after a body that is whole and holds one file and no more."""
    async with aclosing(body_chunks(request)) as body:
        content_type = request.headers.get("Content-Type", "")
        if content_type.partition(";")[0].strip().lower() == FORM:
            async for piece in _of_form(content_type, body, upload):
                yield piece
        else:
            yield upload.header("")
            async for chunk in body:
                for piece in _content(chunk):
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
            for piece in _content(found):
                yield piece
    if not has_file:
        raise MalformedForm(problem=f"it has no field {FILE_FIELD}")


def _refuse_other(part: FormPart, *, has_file: bool) -> None:
    if part.name != FILE_FIELD:
        raise MalformedForm(problem=f"it has a field {part.name!r:.80}; {FILE_FIELD} is the only one")
    if has_file:
        raise MalformedForm(problem=f"it has more than one {FILE_FIELD}")


def _content(chunk: bytes) -> list[dataset_pb2.UploadDatasetRequest]:
    return [dataset_pb2.UploadDatasetRequest(content=piece) for piece in cut(chunk)]
