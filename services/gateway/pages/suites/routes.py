"""Suites: the list, one with a sample as a model gets it, and one that is checked while it is written."""

from typing import Annotated

from fastapi import APIRouter, Depends, File, Form, Path, Query, UploadFile
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.plain import INT32_MAX
from proctor.values.sample import LAST_PREVIEWED_ROW, MAX_FEWSHOT
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.suites.schemas import SampleShown, SuiteList, SuiteListed, sample_shown
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
    SampleSelection,
    SuiteListView,
    SuiteView,
    editor_view,
)

# Why a sample cannot be shown; the rest of the page can.
_OF_SAMPLES = frozenset({ErrorKind.INVALID, ErrorKind.CONFLICT, ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE})
_FAULTY = "INVALID_SUITE_FILE"
# Suites that the error of an unknown one names.
_MAX_NAMED = 20

Name = Annotated[str, Path(max_length=128)]

router = APIRouter(prefix="/suites", include_in_schema=False)


async def _document(
    document: Annotated[str, Form()] = "",
    files: Annotated[list[UploadFile], File()] = [],  # noqa: B006  # FastAPI copies it
) -> suite_pb2.SuiteDocument:
    """A form's text, with line ends as a file has them, and its data files by their names."""
    data = {each.filename: await each.read() for each in files if each.filename}
    return suite_pb2.SuiteDocument(text=document.replace("\r\n", "\n"), files=data)


DocumentOf = Annotated[suite_pb2.SuiteDocument, Depends(_document)]


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
async def write_suite(page: PageOf) -> Response:
    return page.show("suites/new", EditorView(EXAMPLE))


@router.post("/check")
async def check_suite(page: PageOf, scheduler: SchedulerCalls, document: DocumentOf) -> Response:
    """The faults of the text so far. Without scripts the answer is the whole page with the text."""
    if document.text == EXAMPLE and not document.files:
        # Nobody has written anything yet: the page says which file the example needs.
        return page.show("suites/new", EditorView(EXAMPLE), part="suites/checked_part")
    checked = await scheduler.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=document))
    return page.show("suites/new", editor_view(document.text, checked), part="suites/checked_part")


@router.post("")
async def add_suite(page: PageOf, scheduler: SchedulerCalls, user: User, document: DocumentOf) -> Response:
    try:
        request = suite_pb2.AddSuiteRequest(document=document, user=user, project_id=key_project())
        added = await scheduler.suites.AddSuite(request)
    except DomainError as error:
        if error.reason != _FAULTY:
            # The text is nowhere but in the form.
            view = EditorView(document.text, faults=[suite_pb2.SuiteFault(problem=error.message)])
            status = http_status(error.kind, error.reason)
            return page.show("suites/new", view, part="suites/checked_part", status=status)
        # The error has the first fault only; the check has all.
        checked = await scheduler.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=document))
        view = editor_view(document.text, checked)
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
    sample, fault = await _sample(scheduler, suite, chosen)
    view = SuiteView(found, chosen, sample, fault, ask)
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


async def _sample(
    scheduler: Scheduler, suite: str, chosen: SampleSelection
) -> tuple[SampleShown | None, str]:
    """The sample, or why there is none."""
    if not chosen.task:
        return None, ""
    request = suite_pb2.ShowSampleRequest(
        suite=suite, task=chosen.task, doc_id=chosen.row, num_fewshot=chosen.num_fewshot
    )
    try:
        return sample_shown(request, await scheduler.suites.ShowSample(request)), ""
    except DomainError as error:
        if error.kind not in _OF_SAMPLES:
            raise
        return None, error.message


def _number(given: str, maximum: int) -> int | None:
    is_number = given.isascii() and given.isdecimal() and len(given) < 10
    return min(int(given), maximum) if is_number else None
