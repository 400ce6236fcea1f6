"""Several runs that were ticked in a list: shown together, tagged, exported or deleted."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.run_labels import tags_in
from services.common.errors import DomainError, ErrorKind
from services.gateway.auth.admission import Admission
from services.gateway.auth.audit_trail import Deed
from services.gateway.auth.identity import CallerOf, Now
from services.gateway.backends.calls import BackendCalls, Backends, SchedulerCalls
from services.gateway.pages.addresses import address
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.runs.listed_runs import ListedRun, listed_runs
from services.gateway.pages.runs.reads import closed_runs

# Twice a page of the list.
_MAX_CHOSEN = 100
_PATH = "/runs/chosen"
_REFUSALS = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT, ErrorKind.FORBIDDEN})

_Tags = Annotated[str, Form(max_length=2048)]
_Runs = Annotated[list[str] | None, Form(max_length=_MAX_CHOSEN)]


async def _refusal_noted(request: Request, caller: CallerOf) -> Callable[[Deed], None]:
    admission: Admission = request.app.state.admission
    return partial(admission.trail.note_refusal, caller=caller)


_NoteRefusal = Annotated[Callable[[Deed], None], Depends(_refusal_noted)]

router = APIRouter(prefix=_PATH, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ChosenView:
    """`is_asked`: whether they are to be deleted is asked."""

    rows: Sequence[ListedRun]
    now: datetime
    is_asked: bool

    @property
    def query(self) -> Sequence[tuple[str, str]]:
        return [("run", row.job_id) for row in self.rows]

    @property
    def compare_link(self) -> str:
        return address("/compare", self.query)

    @property
    def ask_link(self) -> str:
        return address(_PATH, [*self.query, ("ask", "delete")])

    @property
    def link(self) -> str:
        return address(_PATH, self.query)

    def export(self, form: str) -> str:
        return address(f"/runs/export.{form}", self.query)


@router.get("")
async def show_chosen(
    page: PageOf,
    backends: BackendCalls,
    now: Now,
    run: Annotated[list[str] | None, Query()] = None,
    ask: str = "",
) -> Response:
    rows = await _listed(backends, _ids(run), now)
    return page.show("runs/chosen", ChosenView(rows, now, ask == "delete"))


@router.post("/tags")
async def tag(
    *,
    page: PageOf,
    scheduler: SchedulerCalls,
    note_refusal: _NoteRefusal,
    run: _Runs = None,
    added: _Tags = "",
    removed: _Tags = "",
) -> Response:
    added_tags, removed_tags = tags_in(added), tags_in(removed)

    async def label(run_id: str) -> None:
        request = scheduler_pb2.LabelRunRequest(
            run_id=run_id, added_tags=added_tags, removed_tags=removed_tags
        )
        await scheduler.runs.LabelRun(request)

    ids = _ids(run)
    done, refusals = await _each(ids, label, "label", note_refusal)
    notice = _notice(f"{_counted(len(done))} tagged.", refusals)
    return page.go(address(_PATH, [("run", run_id) for run_id in ids]), notice)


@router.post("/delete")
async def delete(
    page: PageOf, scheduler: SchedulerCalls, note_refusal: _NoteRefusal, run: _Runs = None
) -> Response:
    """Back to the list, or to those that could not be deleted."""

    async def delete_one(run_id: str) -> None:
        await scheduler.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run_id))

    ids = _ids(run)
    done, refusals = await _each(ids, delete_one, "delete", note_refusal)
    notice = _notice(f"{_counted(len(done))} deleted, with their answers.", refusals)
    left = [("run", run_id) for run_id in ids if run_id not in done]
    return page.go(address(_PATH, left) if left else "/runs", notice)


async def _listed(backends: Backends, ids: Sequence[str], now: datetime) -> Sequence[ListedRun]:
    if not ids:
        return ()
    request = scheduler_pb2.ListRunsRequest(run_ids=ids, page_size=_MAX_CHOSEN)
    runs = (await backends.scheduler.runs.ListRuns(request)).runs
    return listed_runs(runs, await closed_runs(backends.results, runs), now)


async def _each(
    ids: Sequence[str],
    change: Callable[[str], Awaitable[None]],
    action: str,
    note_refusal: Callable[[Deed], None],
) -> tuple[Sequence[str], Sequence[str]]:
    """Those that were changed, and why the others were not.

    The audit gets refusals of single runs from here: the response as a whole is none.
    """

    async def refusal(run_id: str) -> str:
        try:
            await change(run_id)
        except DomainError as error:
            if error.kind not in _REFUSALS:
                raise
            if error.kind is ErrorKind.FORBIDDEN:
                note_refusal(Deed(action, "run", run_id))
            return error.message
        return ""

    refusals = await asyncio.gather(*map(refusal, ids))
    changed = [run_id for run_id, refused in zip(ids, refusals, strict=True) if not refused]
    return changed, [refused for refused in refusals if refused]


def _notice(done: str, refusals: Sequence[str]) -> Notice:
    if not refusals:
        return Notice(done)
    more = f" {len(refusals) - 1} more were refused." if len(refusals) > 1 else ""
    return Notice(f"{done} {refusals[0]}{more}", is_problem=True)


def _counted(runs: int) -> str:
    return "1 run is" if runs == 1 else f"{runs} runs are"


def _ids(given: Sequence[str] | None) -> list[str]:
    """Each once; what is no id is ignored, as in other addresses of pages."""
    ids: dict[str, None] = {}
    for text in given or ():
        try:
            ids[str(UUID(text))] = None
        except ValueError:
            continue
    return [*ids][:_MAX_CHOSEN]
