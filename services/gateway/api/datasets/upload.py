"""The file in the body of an upload, as messages for the scheduler: forwarded in chunks, never whole."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from starlette.exceptions import HTTPException
from starlette.requests import Request

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.row_fields import MAX_PREVIEWED_UPLOAD_BYTES, MAX_UPLOAD_NAME_CHARACTERS
from proctor.values.uploads.column_mapping import MAX_PROMPT_CHARACTERS
from proctor.wire.uploads import upload_messages
from services.gateway.http.errors import MalformedForm, NoUploadName
from services.gateway.http.uploads import FORM, FormPart, base_name, body_chunks, form_parts, media_type_of

FILE_FIELD = "file"
# Of a form, before the file.
MAPPING_FIELDS = ("prompt", "target", "id")
# Of a page whose form can save the mapping too; an upload ignores it.
SAVE_AS = "save_as"
# UTF-8 has up to four bytes for a character, and a browser two for a line end.
MAX_FIELD_BYTES = 4 * MAX_PROMPT_CHARACTERS
# A page sends these, or none, to any server without asking it first.
_SENT_BY_FOREIGN_PAGES = frozenset({"", "text/plain", "application/x-www-form-urlencoded"})

_Parts = AsyncGenerator[dataset_pb2.DatasetHeader | bytes]


def upload_requests(
    request: Request, header: dataset_pb2.DatasetHeader
) -> AsyncGenerator[dataset_pb2.UploadDatasetRequest]:
    """The header, content and end of an upload. The end follows only a complete body with one file.

    A name in `header` replaces that of the form.
    """
    return upload_messages(dataset_pb2.UploadDatasetRequest, _parts(request, header))


async def _parts(request: Request, header: dataset_pb2.DatasetHeader) -> _Parts:
    async with aclosing(body_chunks(request)) as body:
        content_type = request.headers.get("Content-Type", "")
        if media_type_of(content_type) == FORM:
            async for part in _form_parts(content_type, body, header):
                yield part
        elif media_type_of(content_type) in _SENT_BY_FOREIGN_PAGES:
            raise HTTPException(415, "Name the content of the file: Content-Type: application/octet-stream.")
        else:
            yield _named(header, "")
            async for chunk in body:
                yield chunk


async def _form_parts(
    content_type: str, body: AsyncIterator[bytes], header: dataset_pb2.DatasetHeader
) -> _Parts:
    has_file, field, fields = False, "", dict[str, bytearray]()
    async for found in form_parts(content_type, body):
        if isinstance(found, FormPart):
            field = found.name if found.name in (*MAPPING_FIELDS, SAVE_AS) and not has_file else ""
            if field:
                _check_once(field, fields)
                fields[field] = bytearray()
                continue
            _check_only_file(found, has_file=has_file)
            has_file = True
            _set_mapping(header, fields)
            yield _named(header, found.file_name or "")
        elif field:
            fields[field] += found
            if len(fields[field]) > MAX_FIELD_BYTES:
                raise _too_long(field)
        else:
            yield found
    if not has_file:
        raise MalformedForm(problem=f"it has no field {FILE_FIELD}")


async def mapping_to_save(request: Request) -> dataset_pb2.SaveMappingRequest:
    """The name and the fields of a mapping in a form; of what stands behind them nothing is read."""
    fields, field = dict[str, bytearray](), ""
    async with aclosing(body_chunks(request)) as body:
        async for found in form_parts(request.headers.get("Content-Type", ""), body):
            if isinstance(found, FormPart):
                if found.name not in (*MAPPING_FIELDS, SAVE_AS):
                    break
                field = found.name
                _check_once(field, fields)
                fields[field] = bytearray()
            else:
                fields[field] += found
                if len(fields[field]) > MAX_FIELD_BYTES:
                    raise _too_long(field)
    name = _text(SAVE_AS, fields.pop(SAVE_AS, bytearray()))
    header = dataset_pb2.DatasetHeader()
    _set_mapping(header, fields)
    return dataset_pb2.SaveMappingRequest(name=name, mapping=header.mapping)


def _check_once(field: str, fields: Mapping[str, object]) -> None:
    if field in fields:
        raise MalformedForm(problem=f"it has more than one field {field}")


def _set_mapping(header: dataset_pb2.DatasetHeader, fields: Mapping[str, bytearray]) -> None:
    """Fields replace what the address names. A form of a browser has CR LF where its page has LF."""
    for field, content in fields.items():
        if field in MAPPING_FIELDS:
            setattr(header.mapping, field, _text(field, content))


def _text(field: str, content: bytearray) -> str:
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise MalformedForm(problem=f"its field {field} is not valid UTF-8") from error
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise _too_long(field)
    return text


def _too_long(field: str) -> MalformedForm:
    return MalformedForm(problem=f"its field {field} has more than {MAX_PROMPT_CHARACTERS:,} characters")


def _check_only_file(part: FormPart, *, has_file: bool) -> None:
    if part.name != FILE_FIELD:
        if part.name in MAPPING_FIELDS:
            raise MalformedForm(problem=f"its field {part.name} has to stand before {FILE_FIELD}")
        fields = f"{', '.join(MAPPING_FIELDS)} and {FILE_FIELD} are the only ones"
        raise MalformedForm(problem=f"it has a field {part.name!r:.80}; {fields}")
    if has_file:
        raise MalformedForm(problem=f"it has more than one {FILE_FIELD}")


async def beginning_of(
    request: Request, header: dataset_pb2.DatasetHeader
) -> dataset_pb2.PreviewUploadRequest:
    """How the file in the body begins; the rest is not read."""
    first, is_whole = bytearray(), True
    async with aclosing(_parts(request, header)) as parts:
        async for part in parts:
            if isinstance(part, bytes):
                first += part
            if len(first) > MAX_PREVIEWED_UPLOAD_BYTES:
                is_whole = False
                break
    return dataset_pb2.PreviewUploadRequest(
        name=header.name,
        format=header.format,
        beginning=bytes(first[:MAX_PREVIEWED_UPLOAD_BYTES]),
        is_whole=is_whole,
        mapping=header.mapping if header.mapping.prompt else None,
    )


def _named(header: dataset_pb2.DatasetHeader, file_name: str) -> dataset_pb2.DatasetHeader:
    header.name = header.name or base_name(file_name)
    if header.HasField("mapping") and not any(getattr(header.mapping, each) for each in MAPPING_FIELDS):
        # Fields of a page that were left empty.
        header.ClearField("mapping")
    if not 0 < len(header.name) <= MAX_UPLOAD_NAME_CHARACTERS:
        raise NoUploadName
    return header
