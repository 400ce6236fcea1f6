"""Suites: list, add, delete, and show samples."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.plain import INT32_MAX
from proctor.values.sample import LAST_PREVIEWED_ROW, MAX_FEWSHOT
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.suites.schemas import (
    NewSuite,
    SampleShown,
    SuiteAdded,
    SuiteList,
    SuiteListed,
    SuiteWritten,
    file_shown,
    sample_shown,
)
from services.gateway.auth.identity import User
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.errors import NotSuiteText, SuiteFault, SuiteRefused, SuiteVersionNotFound
from services.gateway.http.parameters import ProjectQuery
from services.gateway.http.paths import SUITES
from services.gateway.http.presentation import Done, present
from services.gateway.http.problem import Described, problems
from services.gateway.http.uploads import media_type_of

_JSON = "application/json"
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})
_IN_PATH = frozenset({"UNKNOWN_SUITE", "UNKNOWN_TASK"})
# FastAPI cannot derive two kinds of body from a signature.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewSuite.model_json_schema()},
            "application/yaml": {"schema": {"type": "string", "description": "The YAML file"}},
        },
    }
}

_KNOWN: Described = {200: {"model": SuiteAdded, "description": "Known, or only validated"}}

VersionPath = Annotated[int, Path(ge=1, le=INT32_MAX)]
RowPath = Annotated[int, Path(ge=0, le=LAST_PREVIEWED_ROW, description="From 0")]
ShotsQuery = Annotated[int | None, Query(ge=0, le=MAX_FEWSHOT, description="Examples in the prompt")]

router = APIRouter(prefix=SUITES, tags=["suites"])


async def _document(
    request: Request,
    file_name: Annotated[str, Query(max_length=255, description="Name of a YAML body")] = "",
) -> suite_pb2.SuiteDocument:
    media_type = media_type_of(request.headers.get("Content-Type", ""))
    if media_type not in _YAML | {_JSON}:
        raise HTTPException(415, f"Send a suite as {_JSON} or application/yaml, not as {media_type!r:.80}.")
    body = await request.body()
    if media_type in _YAML:
        return suite_pb2.SuiteDocument(text=_decoded(body), file_name=file_name)
    try:
        return NewSuite.model_validate_json(body).to_document()
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(faults) from error


async def _new_suite(
    document: Annotated[suite_pb2.SuiteDocument, Depends(_document)], project_id: ProjectQuery = 0
) -> suite_pb2.AddSuiteRequest:
    return suite_pb2.AddSuiteRequest(document=document, project_id=project_id)


@router.get("", responses=problems(503), summary="List suites, invalid ones with their problem")
async def list_suites(scheduler: SchedulerCalls) -> SuiteList:
    return present(SuiteList, await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()))


@router.post(
    "",
    status_code=201,
    responses=_KNOWN | problems(404, 413, 415, 422, 503),
    openapi_extra=_BODY,
    summary="Add a suite of your own",
)
async def add(
    scheduler: SchedulerCalls,
    user: User,
    response: Response,
    new: Annotated[suite_pb2.AddSuiteRequest, Depends(_new_suite)],
    *,
    dry_run: Annotated[bool, Query(description="Validate only")] = False,
) -> SuiteAdded:
    if dry_run:
        response.status_code = 200
        return await _validated(scheduler, new.document)
    new.user = user
    added = await _added(scheduler, new)
    response.status_code = 200 if added.is_known else 201
    return present(SuiteAdded, added)


@router.get(
    "/{suite}/document",
    responses=problems(404, 409, 422, 503),
    summary="A suite of your own as it was added, to write its next version from",
)
async def read_document(scheduler: SchedulerCalls, suite: str) -> SuiteWritten:
    """With `@` and a version behind the name another one than the latest."""
    request = suite_pb2.GetSuiteDocumentRequest(suite=suite)
    with _not_found_in_path():
        found = await scheduler.suites.GetSuiteDocument(request)
    written = found.document
    return SuiteWritten(
        document=written.text,
        file_name=written.file_name,
        files={path: file_shown(content) for path, content in written.files.items()},
        version=found.version,
    )


@router.get(
    "/{suite}/tasks/{task}/samples/{row}",
    responses=problems(404, 409, 422, 503),
    summary="Show a sample as a model would get it",
)
async def show(
    scheduler: SchedulerCalls, suite: str, task: str, row: RowPath, num_fewshot: ShotsQuery = None
) -> SampleShown:
    request = suite_pb2.ShowSampleRequest(suite=suite, task=task, doc_id=row, num_fewshot=num_fewshot)
    with _not_found_in_path():
        return sample_shown(request, await scheduler.suites.ShowSample(request))


@router.delete(
    "/{suite}/versions/{version}",
    responses=problems(404, 409, 422, 503),
    summary="Delete a version that no run used",
)
async def delete(scheduler: SchedulerCalls, suite: str, version: VersionPath) -> Done:
    try:
        await scheduler.suites.DeleteSuite(suite_pb2.DeleteSuiteRequest(suite=suite, version=version))
    except RemoteError as error:
        if error.reason != "UNKNOWN_SUITE":
            raise
        raise SuiteVersionNotFound(suite=suite, version=version) from error
    return Done(message=f"Version {version} of suite {suite} deleted")


async def _validated(scheduler: Scheduler, document: suite_pb2.SuiteDocument) -> SuiteAdded:
    checked = await _check(scheduler, document)
    if checked.faults:
        raise SuiteRefused(_faults(checked))
    return SuiteAdded(suite=present(SuiteListed, checked.suite), is_known=None)


async def _added(scheduler: Scheduler, request: suite_pb2.AddSuiteRequest) -> suite_pb2.AddSuiteResponse:
    try:
        return await scheduler.suites.AddSuite(request)
    except RemoteError as error:
        if error.reason != "INVALID_SUITE_FILE":
            raise
        # The error has the first fault only; the check lists all.
        faults = _faults(await _check(scheduler, request.document))
        raise SuiteRefused(faults or [SuiteFault("", None, "", error.message)]) from error


async def _check(scheduler: Scheduler, document: suite_pb2.SuiteDocument) -> suite_pb2.CheckSuiteResponse:
    return await scheduler.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=document))


def _faults(checked: suite_pb2.CheckSuiteResponse) -> list[SuiteFault]:
    return [SuiteFault(each.file, each.line or None, each.field, each.problem) for each in checked.faults]


@contextmanager
def _not_found_in_path() -> Iterator[None]:
    """Unknown names are bad requests in a body, but not found in a path."""
    try:
        yield
    except RemoteError as error:
        if error.reason in _IN_PATH:
            raise RemoteError(
                ErrorKind.NOT_FOUND,
                error.reason,
                error.message,
                {name: str(value) for name, value in error.facts.items()},
            ) from error
        raise


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise NotSuiteText from error
