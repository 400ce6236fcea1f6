"""The name, the tags and the note of a run on its page: shown, and changed in place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.run_labels import (
    MAX_NAME_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    tags_in,
)
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import JobId
from services.gateway.pages.page import Notice, PageOf

_Text = Annotated[str, Form(max_length=MAX_NOTE_CHARACTERS * 2)]

router = APIRouter(prefix="/runs", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class LabelsView:
    """`fault`: why what was entered, which is shown, is refused. Its form is offered to those who may."""

    run_id: str
    name: str
    tags: Sequence[str]
    note: str
    may_change: bool = True
    fault: str = ""

    @property
    def max_name(self) -> int:
        return MAX_NAME_CHARACTERS

    @property
    def max_note(self) -> int:
        return MAX_NOTE_CHARACTERS

    @property
    def max_tags(self) -> int:
        """Characters of all tags with their commas."""
        return MAX_TAGS * (MAX_TAG_CHARACTERS + 2)


def labels_view(run: run_pb2.Run, *, may_change: bool) -> LabelsView:
    labels = run.labels
    return LabelsView(run.run_id, labels.name, [*labels.tags], labels.note, may_change)


@router.post("/{job_id}/labels")
async def label(  # noqa: PLR0917  # the fields of the form
    page: PageOf,
    scheduler: SchedulerCalls,
    job_id: JobId,
    name: _Text = "",
    tags: _Text = "",
    note: _Text = "",
) -> Response:
    given = scheduler_pb2.RunTags(tags=tags_in(tags))
    request = scheduler_pb2.LabelRunRequest(run_id=job_id, name=name, note=note, tags=given)
    path = f"/runs/{job_id}"
    try:
        run = (await scheduler.runs.LabelRun(request)).run
    except DomainError as error:
        if error.kind is not ErrorKind.INVALID:
            raise
        if not page.is_part:
            return page.go(path, Notice(error.message, is_problem=True))
        view = LabelsView(job_id, name, given.tags, note, fault=error.message)
        return page.show("runs/labels", view, part="runs/labels", status=422)
    if not page.is_part:
        return page.go(path, Notice("Saved."))
    return page.show("runs/labels", labels_view(run, may_change=True), part="runs/labels")
