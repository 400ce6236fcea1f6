"""The form of imports: the log of another tool becomes a run."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from proctor.v1 import import_service_pb2 as import_pb2
from proctor.values.row_fields import MAX_UPLOAD_NAME_CHARACTERS
from proctor.wire.uploads import upload_messages
from services.common.errors import DomainError, ErrorKind
from services.gateway.auth.identity import User
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.errors import MalformedForm, NoUploadName
from services.gateway.http.project_names import key_project
from services.gateway.http.uploads import FormPart, base_name, body_chunks, form_parts
from services.gateway.pages.page import Notice, PageOf

_FILE = "file"
# They stand before the file in the form.
_FIELDS = frozenset({"suite", "model"})
_MAX_FIELD_BYTES = 4096
_REFUSED = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT, ErrorKind.EXHAUSTED})

router = APIRouter(prefix="/imports", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ImportView:
    """What was entered, and in one sentence why it was refused."""

    suite: str = ""
    model: str = ""
    problem: str = ""


@router.get("")
async def show_form(page: PageOf) -> Response:
    return page.show("imports/import", ImportView())


@router.post("")
async def send(page: PageOf, scheduler: SchedulerCalls, user: User, request: Request) -> Response:
    """The page of the new run; or the form again, with what is wrong."""
    header = import_pb2.ImportHeader(user=user, request_id=str(uuid.uuid4()), project_id=key_project())
    try:
        async with aclosing(upload_messages(import_pb2.ImportRunRequest, _parts(request, header))) as sent:
            imported = await scheduler.imports.ImportRun(sent)
    except DomainError as error:
        if error.kind not in _REFUSED:
            raise
        view = ImportView(header.suite, header.model, error.message)
        return page.show("imports/import", view, status=422)
    notes = " ".join(["The log is imported.", *imported.notes])
    return page.go(f"/runs/{imported.run.run_id}", Notice(notes))


async def _parts(
    request: Request, header: import_pb2.ImportHeader
) -> AsyncGenerator[import_pb2.ImportHeader | bytes]:
    """The header with the fields of the form, then the file. Raises `MalformedForm`."""
    field, entered = "", bytearray()
    async with aclosing(body_chunks(request)) as body:
        async for found in form_parts(request.headers.get("Content-Type", ""), body):
            if isinstance(found, bytes):
                if field == _FILE:
                    yield found
                    continue
                entered += found
                if len(entered) > _MAX_FIELD_BYTES:
                    raise MalformedForm(problem=f"its field {field} is too long")
                continue
            _enter(header, field, bytes(entered))
            field, entered = _next(found, field), bytearray()
            if field == _FILE:
                header.name = base_name(found.file_name or "")
                if not 0 < len(header.name) <= MAX_UPLOAD_NAME_CHARACTERS:
                    raise NoUploadName
                yield header
    if field != _FILE:
        raise MalformedForm(problem=f"it has no field {_FILE}")


def _next(part: FormPart, before: str) -> str:
    if before == _FILE:
        raise MalformedForm(problem=f"{_FILE} must be its last field")
    if part.name != _FILE and part.name not in _FIELDS:
        raise MalformedForm(problem=f"it has a field {part.name!r:.80}")
    return part.name


def _enter(header: import_pb2.ImportHeader, field: str, entered: bytes) -> None:
    if field in _FIELDS:
        setattr(header, field, entered.decode("utf-8", "replace").strip())
