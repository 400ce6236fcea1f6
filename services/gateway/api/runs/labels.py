"""Name, tags and note of a run in bodies and queries, and the changes of them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.run_labels import (
    MAX_NAME_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
)
from proctor.values.run import MAX_HISTORY_DAYS
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import JobId, RequestBody, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

RunName = Annotated[
    Text, Field(max_length=MAX_NAME_CHARACTERS, description="By which people tell it from other runs")
]
Tag = Annotated[Text, Field(max_length=MAX_TAG_CHARACTERS, description="Has no comma")]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS)]
Note = Annotated[Text, Field(max_length=MAX_NOTE_CHARACTERS)]
NameFilter = Annotated[Text, Query(description="A part of the name of a run, in upper or lower case")]
TagFilter = Annotated[Text, Query(description="A tag of a run")]
DaysFilter = Annotated[
    int | None, Query(ge=1, le=MAX_HISTORY_DAYS, description="Only runs ordered in the last so many days")
]


class LabelsGiven(RequestBody):
    """The labels of a new run. They change nothing that is evaluated."""

    name: RunName = ""
    tags: Tags = Field(default_factory=list)
    note: Note = ""

    def labels(self) -> run_pb2.RunLabels:
        return run_pb2.RunLabels(name=self.name, tags=self.tags, note=self.note)


class LabelsPatch(RequestBody):
    """What is absent stays as it is; an empty text or list removes what there is."""

    name: RunName | None = None
    note: Note | None = None
    tags: Tags | None = Field(default=None, description="In place of all present ones")
    added_tags: Tags = Field(default_factory=list)
    removed_tags: Tags = Field(default_factory=list)

    def to_proto(self, run_id: str) -> scheduler_pb2.LabelRunRequest:
        return scheduler_pb2.LabelRunRequest(
            run_id=run_id,
            name=self.name,
            note=self.note,
            tags=None if self.tags is None else scheduler_pb2.RunTags(tags=self.tags),
            added_tags=self.added_tags,
            removed_tags=self.removed_tags,
        )


class LabelsListed(BaseModel):
    """The labels of a run in a list."""

    name: str = Field(default="", description="By which people tell it from other runs; empty for none")
    tags: list[str] = []


class LabelsShown(LabelsListed):
    note: str = ""


router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])


@router.patch(
    "/results/{job_id}",
    responses=problems(404, 409, 422, 503),
    summary="Change the name, the tags or the note of a job",
)
async def label(scheduler: SchedulerCalls, job_id: JobId, body: LabelsPatch) -> LabelsShown:
    response = await scheduler.runs.LabelRun(body.to_proto(job_id))
    return present(LabelsShown, response.run.labels)
