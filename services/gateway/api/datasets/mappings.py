"""Mappings of the columns of uploads, saved by name: list, show, save and delete."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.names.user import MAX_USER_CHARACTERS
from proctor.values.uploads.column_mapping import MAX_COLUMN_CHARACTERS, MAX_PROMPT_CHARACTERS
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import ProjectFilter, ProjectQuery, RequestBody, Text
from services.gateway.http.paths import MAPPINGS
from services.gateway.http.presentation import Done, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName, ProjectNumber

MappingName = Annotated[Text, Path(min_length=1, max_length=100, description="Unique in its project")]
_ONE = problems(404, 422, 503)

router = APIRouter(tags=["datasets"])


class MappingShown(BaseModel):
    """How columns become the fields of a row."""

    prompt: str = Field(description="With {{column}} for each column that it shows")
    target: str = Field(description="Column; empty: rows have no target")
    id: str = Field(description="Column; empty: rows are numbered")


class MappingSaved(MappingShown):
    name: str = Field(description="Unique in its project")
    user: str = Field(description="Who saved it")
    project_id: int = Field(description="0: none")
    project_name: ProjectName
    saved_at: datetime


class MappingList(BaseModel):
    mappings: list[MappingSaved] = Field(description="The latest first, at most 500")


class MappingToSave(RequestBody):
    prompt: Text = Field(max_length=MAX_PROMPT_CHARACTERS, description="With {{column}} for each column")
    target: Text = Field("", max_length=MAX_COLUMN_CHARACTERS, description="Column with the target")
    id: Text = Field("", max_length=MAX_COLUMN_CHARACTERS, description="Column with the id")
    project_id: ProjectNumber = Field(0, description="0: none")


def mapping_saved(saved: dataset_pb2.SavedMapping) -> MappingSaved:
    return present(MappingSaved, saved, saved.mapping)


@router.get(
    MAPPINGS, responses=problems(404, 422, 503), summary="List saved mappings of columns, the latest first"
)
async def list_mappings(
    scheduler: SchedulerCalls,
    user: Annotated[Text, Query(max_length=MAX_USER_CHARACTERS, description="Only this user's")] = "",
    project_id: ProjectFilter = None,
) -> MappingList:
    request = dataset_pb2.ListMappingsRequest(user=user, project_id=project_id)
    found = (await scheduler.datasets.ListMappings(request)).mappings
    return MappingList(mappings=[mapping_saved(each) for each in found])


@router.get(f"{MAPPINGS}/{{name}}", responses=_ONE, summary="One saved mapping of columns")
async def get_mapping(
    scheduler: SchedulerCalls, name: MappingName, project_id: ProjectQuery = 0
) -> MappingSaved:
    request = dataset_pb2.GetMappingRequest(name=name, project_id=project_id)
    return mapping_saved((await scheduler.datasets.GetMapping(request)).saved)


@router.put(
    f"{MAPPINGS}/{{name}}",
    responses=problems(404, 409, 422, 503),
    summary="Save a mapping of columns under a name, in place of your own of that name",
)
async def save_mapping(scheduler: SchedulerCalls, name: MappingName, body: MappingToSave) -> MappingSaved:
    mapping = dataset_pb2.ColumnMapping(prompt=body.prompt, target=body.target, id=body.id)
    request = dataset_pb2.SaveMappingRequest(name=name, mapping=mapping, project_id=body.project_id)
    return mapping_saved((await scheduler.datasets.SaveMapping(request)).saved)


@router.delete(
    f"{MAPPINGS}/{{name}}",
    responses=problems(404, 409, 422, 503),
    summary="Delete a saved mapping; data sets that were mapped by it stay",
)
async def delete_mapping(scheduler: SchedulerCalls, name: MappingName, project_id: ProjectQuery = 0) -> Done:
    request = dataset_pb2.DeleteMappingRequest(name=name, project_id=project_id)
    await scheduler.datasets.DeleteMapping(request)
    return Done(message=f"Mapping {name} deleted")
