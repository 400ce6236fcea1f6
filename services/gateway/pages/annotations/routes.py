"""The queue of answers that people annotate by keys, and what they said, as a list and a file."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.values.plain import INT32_MAX
from services.gateway.api.judging.annotations import (
    AgreementShown,
    AnnotationShown,
    QueuedAnswer,
    agreement_shown,
    queued_answer,
)
from services.gateway.auth.identity import User
from services.gateway.backends.calls import Results, ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import JSON_INT_MAX, JobId
from services.gateway.http.presentation import moment, present
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.rows.runs import RunRow, run_row
from services.gateway.pages.table_files import FileForm, Value, streamed_file

_SHOWN, _CHUNK = 50, 500
_MAX_CHARACTERS = 512
_COLUMNS = ("sample", "rollout", "user", "label", "score", "comment", "annotated_at")
_NUMBERS = {"sample", "rollout", "score"}

router = APIRouter(prefix="/runs", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """Which answers come next."""

    raters: Annotated[int, Query(ge=1, le=10)] = 2
    order: Annotated[str, Query(max_length=_MAX_CHARACTERS)] = ""

    @property
    def is_disagreement_first(self) -> bool:
        return self.order == "disagreement"

    def query(self, **changes: str | int) -> str:
        """What an address has behind the path; empty for the usual choice."""
        chosen = {"raters": self.raters, "order": self.order, **changes}
        usual = {"raters": 2, "order": ""}
        query = urlencode({name: value for name, value in chosen.items() if value != usual.get(name)})
        return f"?{query}" if query else ""


@dataclass(frozen=True, slots=True)
class AnnotationsView:
    """`document` is the prompt of the judge whose question is asked; "" without a judge."""

    run: RunRow
    document: str
    queued: QueuedAnswer
    agreement: AgreementShown
    annotations: Sequence[AnnotationShown]
    following: str
    choice: QueueChoice

    @property
    def path(self) -> str:
        return f"/runs/{self.run.job_id}/annotations"

    @property
    def agreement_in_words(self) -> str:
        found = self.agreement
        if found.value is None:
            return "Agreement is shown once two people have given labels to the same answers."
        name = "Cohen's κ" if found.measure == "cohens_kappa" else "Krippendorff's α"
        ends = f", 95 % from {found.ci95[0]:.2f} to {found.ci95[1]:.2f}" if found.ci95 else ""
        answers = "1 answer" if found.units == 1 else f"{found.units:,} answers"
        return f"{name} of {found.raters} people is {found.value:.2f}{ends}, over {answers}."


@router.get("/{job_id}/annotations")
async def show_queue(  # noqa: PLR0917  # backends, caller and parameters
    page: PageOf,
    scheduler: SchedulerCalls,
    results: ResultsCalls,
    user: User,
    job_id: JobId,
    choice: Annotated[QueueChoice, Depends()],
    after: Annotated[str, Query(max_length=_MAX_CHARACTERS)] = "",
) -> Response:
    asked = annotation_pb2.FindUnannotatedRequest(
        run_id=job_id,
        user=user,
        raters=choice.raters,
        is_disagreement_first=choice.is_disagreement_first,
    )
    run, queued, agreement, said = await asyncio.gather(
        scheduler.run(job_id),
        queued_answer(results, asked),
        agreement_shown(results, job_id, user),
        results.annotations.ListAnnotations(_listing(job_id, user, _SHOWN, after)),
    )
    view = AnnotationsView(
        run=run_row(run),
        document=run.order.judge.document,
        queued=queued,
        agreement=agreement,
        annotations=[present(AnnotationShown, one) for one in said.annotations],
        following=said.next_page_token,
        choice=choice,
    )
    return page.show("annotations/annotations", view)


class AnnotationForm(BaseModel):
    """What is said of an answer, and how the queue goes on."""

    sample: Annotated[int, Field(ge=0, le=JSON_INT_MAX)]
    rollout: Annotated[int, Field(ge=0, le=INT32_MAX)] = 0
    label: Annotated[str, Field(max_length=50)] = ""
    comment: Annotated[str, Field(max_length=2000)] = ""
    raters: Annotated[int, Field(ge=1, le=10)] = 2
    order: Annotated[str, Field(max_length=_MAX_CHARACTERS)] = ""


@router.post("/{job_id}/annotations")
async def annotate(
    page: PageOf, results: ResultsCalls, user: User, job_id: JobId, form: Annotated[AnnotationForm, Form()]
) -> Response:
    await results.annotations.AnnotateAnswer(
        annotation_pb2.AnnotateAnswerRequest(
            run_id=job_id,
            user=user,
            sample=form.sample,
            rollout=form.rollout,
            label=form.label,
            comment=form.comment,
        )
    )
    said = f"“{form.label}”" if form.label else "cannot tell"
    done = Notice(f"Sample {form.sample}: {said}.")
    return page.go(f"/runs/{job_id}/annotations{QueueChoice(form.raters, form.order).query()}", done)


@router.get("/{job_id}/annotations/export.{form}")
async def export_annotations(results: ResultsCalls, user: User, job_id: JobId, form: FileForm) -> Response:
    """Those that the caller may see, to the last one."""
    request = _listing(job_id, user, _CHUNK)
    stem, records = f"annotations_{job_id[:8]}", _records(results, request)
    return await streamed_file(stem, form, _COLUMNS, records, numbers=_NUMBERS)


def _listing(run_id: str, user: str, size: int, after: str = "") -> annotation_pb2.ListAnnotationsRequest:
    return annotation_pb2.ListAnnotationsRequest(run_id=run_id, user=user, page_size=size, page_token=after)


async def _records(
    results: Results, request: annotation_pb2.ListAnnotationsRequest
) -> AsyncGenerator[Sequence[Value]]:
    while True:
        page = await results.annotations.ListAnnotations(request)
        for one in page.annotations:
            score = one.score if one.HasField("score") else None
            at = moment(one.annotated_at)
            yield (
                one.sample,
                one.rollout,
                one.user,
                one.label,
                score,
                one.comment,
                at.isoformat() if at else "",
            )
        request.page_token = page.next_page_token
        if not request.page_token:
            return
