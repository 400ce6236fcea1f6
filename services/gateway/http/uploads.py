"""Uploads: the body of a request and the parts of a multipart form, read in chunks and never as a whole."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from services.gateway.http.errors import BodyCutOff, MalformedForm

FORM = "multipart/form-data"
# Of any kind; the forms of pages have some thirty.
MAX_FORM_FIELDS = 100
# RFC 2046, section 5.1.1.
_MAX_BOUNDARY_BYTES = 70


@dataclass(frozen=True, slots=True)
class FormPart:
    """The start of a part; `file_name` is None for a field that is not a file."""

    name: str
    file_name: str | None


FormItem = FormPart | bytes


async def form_parts(content_type: str, body: AsyncIterable[bytes]) -> AsyncIterator[FormItem]:
    """Yields each part, followed by the chunks of its content. Raises `MalformedForm`."""
    form = _Form(_boundary(content_type))
    async for chunk in body:
        for found in form.feed(chunk):
            yield found
    form.check_ended()


class _Form:
    """Collects what the parser calls back with, in the order of the form."""

    def __init__(self, boundary: bytes) -> None:
        self._found: list[FormItem] = []
        # The parser cuts content wherever it looks like a boundary; one chunk of the body stays one piece.
        self._content = bytearray()
        self._header_name = self._header_value = self._disposition = b""
        self._is_ended = False
        self._parts = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._add_header_name,
                "on_header_value": self._add_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._add_content,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> list[FormItem]:
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise MalformedForm(problem=f"{error}".rstrip(".")) from error
        self._end_content()
        found, self._found = self._found, []
        return found

    def check_ended(self) -> None:
        if not self._is_ended:
            raise MalformedForm(problem="it ends before its last boundary")

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_FORM_FIELDS:
            raise MalformedForm(problem=f"it has more than {MAX_FORM_FIELDS} fields")
        self._disposition = b""

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name = self._header_value = b""

    def _end_headers(self) -> None:
        kind, options = parse_options_header(self._disposition)
        if kind != b"form-data" or b"name" not in options:
            raise MalformedForm(problem="a part of it has no name")
        file_name = options.get(b"filename")
        self._end_content()
        self._found.append(
            FormPart(
                options[b"name"].decode(errors="replace"),
                None if file_name is None else file_name.decode(errors="replace"),
            )
        )

    def _add_content(self, data: bytes, start: int, end: int) -> None:
        self._content += data[start:end]

    def _end_content(self) -> None:
        if self._content:
            self._found.append(bytes(self._content))
            self._content.clear()

    def _end(self) -> None:
        self._is_ended = True


def _boundary(content_type: str) -> bytes:
    boundary = boundary_of(content_type)
    if not 0 < len(boundary) <= _MAX_BOUNDARY_BYTES:
        raise MalformedForm(problem=f"its Content-Type names no boundary of 1 to {_MAX_BOUNDARY_BYTES} bytes")
    return boundary


def boundary_of(content_type: str) -> bytes:
    """What each part of a form begins with; b"" where the header does not say it."""
    _, options = parse_options_header(content_type)
    return options.get(b"boundary", b"")


async def body_chunks(request: Request) -> AsyncGenerator[bytes]:
    """The body as it arrives. Raises `BodyCutOff` for a client that disconnects."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise BodyCutOff from error


def media_type_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def base_name(file_name: str) -> str:
    """The file name without folders: some browsers send a whole path."""
    return file_name.replace("\\", "/").rpartition("/")[2]
