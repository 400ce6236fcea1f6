"""The form of a file's upload, as messages for the scheduler: forwarded in chunks, never whole."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NoReturn

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from proctor.v1 import file_service_pb2 as file_pb2
from proctor.values.openai import MAX_EXPIRY_SECONDS, MIN_EXPIRY_SECONDS
from proctor.values.row_fields import MAX_UPLOAD_NAME_CHARACTERS
from proctor.wire.uploads import upload_messages
from services.gateway.http.errors import MalformedForm
from services.gateway.http.parameters import JSON_INT_MAX
from services.gateway.http.project_names import is_number, number_of_project
from services.gateway.http.uploads import FORM, FormPart, base_name, body_chunks, form_parts, media_type_of

FILE_FIELD = "file"
PURPOSE = "purpose"
ANCHOR = "expires_after[anchor]"
SECONDS = "expires_after[seconds]"
PROJECT = "project_id"
_FIELDS = (FILE_FIELD, PURPOSE, ANCHOR, SECONDS, PROJECT)
# Fields are collected in memory; all but the file are a word or a number.
_MAX_FIELD_BYTES = 256


def upload_requests(
    request: Request, header: file_pb2.FileHeader
) -> AsyncGenerator[file_pb2.UploadFileRequest]:
    """The header, content and end of an upload. The end follows only a complete and valid form."""
    return upload_messages(file_pb2.UploadFileRequest, _parts(request, header))


async def _parts(
    request: Request, header: file_pb2.FileHeader
) -> AsyncGenerator[file_pb2.FileHeader | bytes]:
    """Some clients send the file before its purpose, so the purpose is checked at the end."""
    content_type = request.headers.get("Content-Type", "")
    if media_type_of(content_type) != FORM:
        raise MalformedForm(problem=f"its Content-Type is not {FORM}")
    form = _FileForm()
    async with aclosing(body_chunks(request)) as body:
        async for found in form_parts(content_type, body):
            if isinstance(found, FormPart):
                form.begin(found)
                if found.name == FILE_FIELD:
                    form.complete(header)
                    yield header
            elif form.is_in_file:
                yield found
            else:
                form.add(found)
    # Before the end is sent: without it the scheduler stores nothing.
    form.check_whole()


class _FileForm:
    """The small fields of the form, and the current part."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._name = ""
        self._file_name = ""

    @property
    def is_in_file(self) -> bool:
        return self._name == FILE_FIELD

    def begin(self, part: FormPart) -> None:
        if part.name not in _FIELDS:
            _refuse(f"{part.name:.80}", f"there is no such field; there are: {', '.join(_FIELDS)}")
        if part.name in self._values:
            _refuse(part.name, "it is there more than once")
        if part.name in (ANCHOR, SECONDS, PROJECT) and FILE_FIELD in self._values:
            field = PROJECT if part.name == PROJECT else "expires_after"
            _refuse(field, f"it has to come before {FILE_FIELD} in the form")
        self._name = part.name
        self._values[part.name] = b""
        self._file_name = base_name(part.file_name or "")

    def add(self, content: bytes) -> None:
        self._values[self._name] += content
        if len(self._values[self._name]) > _MAX_FIELD_BYTES:
            _refuse(self._name, f"it has more than {_MAX_FIELD_BYTES} bytes")

    def complete(self, header: file_pb2.FileHeader) -> None:
        if not 0 < len(self._file_name) <= MAX_UPLOAD_NAME_CHARACTERS:
            _refuse(FILE_FIELD, f"it needs a file name of 1 to {MAX_UPLOAD_NAME_CHARACTERS} characters")
        if PURPOSE in self._values:
            self._check_purpose()
        header.name, header.purpose = self._file_name, file_pb2.FILE_PURPOSE_BATCH
        if (seconds := self._expires_after_seconds()) is not None:
            header.expires_after_seconds = seconds
        if PROJECT in self._values:
            header.project_id = self._project()

    def check_whole(self) -> None:
        for name in (FILE_FIELD, PURPOSE):
            if name not in self._values:
                _refuse(name, "the form has no such field, and needs it")
        self._check_purpose()

    def _check_purpose(self) -> None:
        if (given := self._text(PURPOSE)) != "batch":
            _refuse(PURPOSE, f"files are for batches here: it has to be batch, and not {given!r:.80}")

    def _expires_after_seconds(self) -> int | None:
        if ANCHOR not in self._values and SECONDS not in self._values:
            return None
        if self._text(ANCHOR) != "created_at":
            _refuse(ANCHOR, "it has to be created_at")
        return self._number(SECONDS, MIN_EXPIRY_SECONDS, MAX_EXPIRY_SECONDS)

    def _project(self) -> int:
        """By its number or its name. Raises `ProjectNotFound`."""
        given = self._text(PROJECT)
        return self._number(PROJECT, 0, JSON_INT_MAX) if is_number(given) else number_of_project(given)

    def _number(self, name: str, minimum: int, maximum: int) -> int:
        given = self._text(name)
        # isdecimal is also true for digits of other scripts, which int parses as well.
        number = int(given) if given.isdecimal() and len(given) <= len(str(maximum)) else -1
        if not minimum <= number <= maximum:
            _refuse(name, f"it has to be a number from {minimum} to {maximum}")
        return number

    def _text(self, name: str) -> str:
        return self._values.get(name, b"").decode(errors="replace")


def _refuse(field: str, problem: str) -> NoReturn:
    raise RequestValidationError([{"loc": ("body", field), "msg": problem}])
