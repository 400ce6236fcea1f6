"""Types of parameters and bodies that several APIs read, and the check for unknown parameters."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from proctor.values.plain import INT32_MAX
from services.common.errors import RunNotFound
from services.gateway.http.api_errors import run_id_of
from services.gateway.http.project_names import BY_NAME, OptionalProject, ProjectNumber

# The largest integer that every reader of JSON has exactly (RFC 8259, section 6).
JSON_INT_MAX = 2**53 - 1


def _storable(text: str) -> str:
    """Protobuf cannot hold half a character (a lone surrogate), and Postgres no NUL; JSON can both."""
    text.encode()  # raises UnicodeEncodeError, a ValueError
    if "\0" in text:
        raise ValueError("it holds a NUL character; leave it out")
    return text


# Compared by identity: a part of a union of types has to be hashable, which a mapping is not.
@dataclass(frozen=True, slots=True, eq=False)
class Keywords:
    """Keywords of JSON Schema for the description of a type; a validator or another service enforces them."""

    keywords: Mapping[str, Any]

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.keywords}


# Of one object, and of a map whose keys are names of fields or options.
MAX_FIELDS = 100
# Of a list or map of tasks.
MAX_TASKS = 1000
# Neither Postgres nor an engine takes a NUL character.
NO_NUL = r"^[^\x00]*$"
Text = Annotated[str, AfterValidator(_storable), Keywords({"pattern": NO_NUL})]
Count = Annotated[int | None, Field(ge=1, le=INT32_MAX)]
ProjectQuery = Annotated[
    ProjectNumber,
    Query(description="Project whose storage it counts towards, by number or name; 0 is none"),
]
ProjectFilter = Annotated[
    OptionalProject, Query(description="Only what is in this project, by number or name")
]
Cursor = Annotated[
    str,
    Keywords({"pattern": "^[A-Za-z0-9_=-]*$"}),
    Query(description="next_cursor of the previous page of the same list"),
]


class RequestBody(BaseModel):
    """A body of JSON: a number is not read from a text, nor from true, and there are no other fields."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def has_few_fields(cls, given: object) -> object:
        """pydantic would write an error for each unknown field."""
        if isinstance(given, dict) and len(given) > MAX_FIELDS:
            raise ValueError(f"it may have at most {MAX_FIELDS} fields")
        return given

    @field_validator("*", mode="before")
    @classmethod
    def has_json_type(cls, given: object, info: ValidationInfo) -> object:
        field = cls.model_fields[info.field_name or ""]
        if BY_NAME in field.metadata:
            return given
        kinds = {field.annotation, *get_args(field.annotation)}
        if kinds & {int, float} and isinstance(given, str | bool):
            raise ValueError("it must be a number")
        if bool in kinds and not isinstance(given, bool):
            raise ValueError("it must be true or false")
        return given


def _job_id(job_id: Annotated[str, Path(description="UUID")]) -> str:
    try:
        return str(uuid.UUID(job_id))
    except ValueError as error:
        raise RunNotFound(run_id=job_id) from error


def _benchmark_run_id(benchmark_id: Annotated[str, Path(description='"bm_…"', max_length=255)]) -> str:
    return run_id_of(benchmark_id)


JobId = Annotated[str, Depends(_job_id)]
BenchmarkRunId = Annotated[str, Depends(_benchmark_run_id)]


async def known_parameters(request: Request) -> None:
    """A dependency of every path."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [parameter.alias for parameter in get_flat_dependant(route.dependant).query_params]
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        problem = f"there is no such parameter; there are: {', '.join(known) or 'none'}"
        raise RequestValidationError([{"loc": ("query", name), "msg": problem} for name in unknown])
