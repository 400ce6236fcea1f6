"""Suites: the list, one with a sample as a model gets it, and one that is checked while it is written."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, File, Form, Path, Query, UploadFile
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.plain import INT32_MAX
from proctor.values.sample import LAST_PREVIEWED_ROW, MAX_FEWSHOT
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.suites.schemas import SuiteList, SuiteListed, sample_shown
from services.gateway.auth.identity import User
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.error_handlers import http_status
from services.gateway.http.errors import SuiteNotFound
from services.gateway.http.presentation import present
from services.gateway.http.project_names import key_project
from services.gateway.pages.addresses import address
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.suites.view import (
    EXAMPLE,
    EditorView,
    RenderedSample,
    SampleSelection,
    StoredFile,
    StoredVersion,
    SuiteListView,
    SuiteView,
    editor_view,
)

# Why a sample cannot be shown; the rest of the page can.
_OF_SAMPLES = frozenset({ErrorKind.INVALID, ErrorKind.CONFLICT, ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE})
_FAULTY = "INVALID_SUITE_FILE"
_UNKNOWN = "UNKNOWN_SUITE"
# Suites that the error of an unknown one names.
_MAX_NAMED = 20

Name = Annotated[str, Path(max_length=128)]

router = APIRouter(prefix="/suites", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Written:
    """What a form has: the document with its files, and the version that it is written from."""

    document: suite_pb2.SuiteDocument
    of: StoredVersion | None = None


async def _written(
    scheduler: SchedulerCalls,
    document: Annotated[str, Form()] = "",
    files: Annotated[list[UploadFile], File()] = [],  # noqa: B006  # FastAPI copies it
    of: Annotated[str, Form(max_length=128)] = "",
    kept: Annotated[list[str], Form()] = [],  # noqa: B006  # FastAPI copies it
) -> Written:
    """A form's text, with line ends as a file has them, and its data files by their names.

    Files of the version that it is written from are those that were kept.
    """
    data = {each.filename: await each.read() for each in files if each.filename}
    text = document.replace("\r\n", "\n")
    if not of:
        return Written(suite_pb2.SuiteDocument(text=text, files=data))
    stored, version = await _stored(scheduler, of, kept)
    kept_files = {each.path: stored.files[each.path] for each in version.files if each.is_kept}
    return Written(suite_pb2.SuiteDocument(text=text, files=kept_files | data), version)


async def _stored(
    scheduler: Scheduler, of: str, kept: Collection[str] | None = None
) -> tuple[suite_pb2.SuiteDocument, StoredVersion]:
    """A version of a user's suite; all of its files are kept where none are named."""
    try:
        found = await scheduler.suites.GetSuiteDocument(suite_pb2.GetSuiteDocumentRequest(suite=of))
    except DomainError as error:
        if error.reason != _UNKNOWN:
            raise
        supported = str(error.facts.get("supported") or "none")
        raise SuiteNotFound(suite=of, supported=supported) from error
    files = [
        StoredFile(path, len(content), kept is None or path in kept)
        for path, content in sorted(found.document.files.items())
    ]
    return found.document, StoredVersion(of.partition("@")[0], found.version, files)


WrittenOf = Annotated[Written, Depends(_written)]


@router.get("")
async def list_suites(
    page: PageOf, scheduler: SchedulerCalls, q: Annotated[str, Query(max_length=128)] = ""
) -> Response:
    part = q.strip().casefold()
    rows = [row for row in await _suites(scheduler) if part in row.suite.casefold()]
    response = page.show("suites/list", SuiteListView(rows, q.strip()), part="suites/list_part")
    if page.is_part:
        response.headers["HX-Push-Url"] = address("/suites", {"q": q.strip()})
    return response


@router.get("/new")
async def write_suite(
    page: PageOf, scheduler: SchedulerCalls, of: Annotated[str, Query(max_length=128)] = ""
) -> Response:
    """`of`: a user's suite, with @ and a version or without; the new version begins with its text."""
    if not of:
        return page.show("suites/new", EditorView(EXAMPLE))
    stored, version = await _stored(scheduler, of)
    return page.show("suites/new", EditorView(stored.text, of=version))


@router.post("/check")
async def check_suite(page: PageOf, scheduler: SchedulerCalls, written: WrittenOf) -> Response:
    """The faults of the text so far. Without scripts the answer is the whole page with the text."""
    document = written.document
    if document.text == EXAMPLE and not document.files:
        # Nobody has written anything yet: the page says which file the example needs.
        return page.show("suites/new", EditorView(EXAMPLE), part="suites/checked_part")
    checked = await scheduler.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=document))
    view = editor_view(document.text, checked, written.of)
    return page.show("suites/new", view, part="suites/checked_part")


@router.post("/preview")
async def preview_suite(
    page: PageOf,
    scheduler: SchedulerCalls,
    written: WrittenOf,
    task: Annotated[str, Form(max_length=256)] = "",
    row: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """A sample of the suite as it is written so far, as a model would get it. Nothing is stored."""
    document, doc_id = written.document, _number(row, LAST_PREVIEWED_ROW) or 0
    request = suite_pb2.ShowSampleRequest(document=document, task=task.strip(), doc_id=doc_id)
    view = EditorView(
        document.text,
        of=written.of,
        rendered=await _sample(scheduler, request),
        task=task.strip(),
        row=doc_id,
    )
    return page.show("suites/new", view, part="suites/preview_part")


@router.post("")
async def add_suite(page: PageOf, scheduler: SchedulerCalls, user: User, written: WrittenOf) -> Response:
    document = written.document
    try:
        request = suite_pb2.AddSuiteRequest(document=document, user=user, project_id=key_project())
        added = await scheduler.suites.AddSuite(request)
    except DomainError as error:
        if error.reason != _FAULTY:
            # The text is nowhere but in the form.
            faults = [suite_pb2.SuiteFault(problem=error.message)]
            view = EditorView(document.text, faults=faults, of=written.of)
            status = http_status(error.kind, error.reason)
            return page.show("suites/new", view, part="suites/checked_part", status=status)
        # The error has the first fault only; the check has all.
        checked = await scheduler.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=document))
        view = editor_view(document.text, checked, written.of)
        return page.show("suites/new", view, part="suites/checked_part", status=422)
    name, version = added.suite.suite, added.suite.version
    notice = f"Version {version} was there before." if added.is_known else f"Version {version} is added."
    return page.leave(f"/suites/{name}", Notice(notice))


@router.get("/{suite}")
async def show_suite(  # noqa: PLR0917  # dependencies and parameters
    page: PageOf,
    scheduler: SchedulerCalls,
    suite: Name,
    task: str = "",
    row: str = "",
    num_fewshot: str = "",
    ask: str = "",
) -> Response:
    found = await _suite(scheduler, suite)
    chosen = SampleSelection(
        task=task or (found.tasks[0].task if found.tasks else ""),
        row=_number(row, LAST_PREVIEWED_ROW) or 0,
        num_fewshot=_number(num_fewshot, MAX_FEWSHOT),
    )
    request = suite_pb2.ShowSampleRequest(
        suite=suite, task=chosen.task, doc_id=chosen.row, num_fewshot=chosen.num_fewshot
    )
    rendered = await _sample(scheduler, request) if chosen.task else RenderedSample()
    view = SuiteView(found, chosen, rendered, ask)
    return page.show("suites/suite", view, part="suites/sample_part")


@router.post("/{suite}/delete")
async def delete_suite(
    page: PageOf,
    scheduler: SchedulerCalls,
    suite: Name,
    version: Annotated[int, Form(ge=1, le=INT32_MAX)],
) -> Response:
    try:
        await scheduler.suites.DeleteSuite(suite_pb2.DeleteSuiteRequest(suite=suite, version=version))
    except DomainError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        return page.go(f"/suites/{suite}", Notice(error.message, is_problem=True))
    return page.go("/suites", Notice(f"Version {version} of {suite} is deleted."))


async def _suites(scheduler: Scheduler) -> list[SuiteListed]:
    return present(SuiteList, await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites


async def _suite(scheduler: Scheduler, name: str) -> SuiteListed:
    listed = await _suites(scheduler)
    for row in listed:
        if row.suite == name:
            return row
    raise SuiteNotFound(suite=name, supported=", ".join(row.suite for row in listed[:_MAX_NAMED]) or "none")


async def _sample(scheduler: Scheduler, request: suite_pb2.ShowSampleRequest) -> RenderedSample:
    """The sample, or why there is none."""
    try:
        return RenderedSample(sample_shown(request, await scheduler.suites.ShowSample(request)))
    except DomainError as error:
        if error.kind not in _OF_SAMPLES:
            raise
        return RenderedSample(fault=error.message)


def _number(given: str, maximum: int) -> int | None:
    is_number = given.isascii() and given.isdecimal() and len(given) < 10
    return min(int(given), maximum) if is_number else None
