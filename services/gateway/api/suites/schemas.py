"""Names of suites, and bodies of suites and their samples."""

import base64
from typing import Annotated

from fastapi import Query
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    JsonValue,
    PlainValidator,
    WithJsonSchema,
)

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.names.suite_name import split_name
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import SuiteNotFound, SuiteVersionNamed
from services.gateway.http.parameters import MAX_TASKS, Keywords, RequestBody, Text
from services.gateway.http.presentation import json_value, present
from services.gateway.http.project_names import ProjectName

_MAX_NAMED = 20
_DATASET_PREFIX = "ds_"
_NO_VERSION = r"^[^@\x00]*$"
_RULE = "All versions. A suite without runs has an empty list; an unknown one is an error (404)"
# Written inline, because references do not resolve in the description of this body.
_CONTENT_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "description": "A binary file, for example Parquet",
            "required": ["base64"],
            "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
            "additionalProperties": False,
        },
    ]
}


def without_version(benchmark: str, *, field: str = "suite") -> str:
    """The name itself. Raises `SuiteVersionNamed` for a name with a version."""
    name, version = split_name(benchmark)
    if version is not None:
        raise SuiteVersionNamed(field=field, given=benchmark, suite=name)
    return benchmark


BenchmarkName = Annotated[Text, AfterValidator(without_version), Keywords({"pattern": _NO_VERSION})]
BenchmarkFilter = Annotated[BenchmarkName, Query(description=_RULE)]


async def check_known_benchmark(scheduler: Scheduler, benchmark: str) -> None:
    """Raises an error for a suite or data set that does not exist.

    Only for empty lists: runs of a suite that was deleted are still listed.
    """
    if benchmark.startswith(_DATASET_PREFIX):
        await scheduler.datasets.GetDataset(dataset_pb2.GetDatasetRequest(dataset_id=benchmark))
        return
    response = await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    known = [listed.suite for listed in response.suites]
    if benchmark and benchmark not in known:
        more = len(known) - _MAX_NAMED
        named = ", ".join(known[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise SuiteNotFound(suite=benchmark, supported=named or "none")


def _content(given: object) -> bytes:
    """Checked here and not by a union of types, so that an error names the file once."""
    match given:
        case str():
            return given.encode()
        case {"base64": str(text), **others} if not others:
            return _decoded(text)
    raise ValueError('write a text, or {"base64": "…"} for a file that is none')


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"it is not base64: {error}") from error


Content = Annotated[bytes, PlainValidator(_content), WithJsonSchema(_CONTENT_SCHEMA)]


class NewSuite(RequestBody):
    """A suite of your own, with its data files."""

    document: Text = Field(min_length=1, description="The YAML file as text")
    file_name: Text = Field(default="", max_length=255, description="Its name, for error messages")
    files: dict[Text, Content] = Field(
        default_factory=dict, max_length=MAX_TASKS, description="Data files by their path in the document"
    )

    def to_document(self) -> suite_pb2.SuiteDocument:
        return suite_pb2.SuiteDocument(text=self.document, file_name=self.file_name, files=self.files)


class BinaryFile(BaseModel):
    """A file that is no text, for example Parquet."""

    base64: str


class SuiteWritten(BaseModel):
    """A version of a user's suite, as the body that added it."""

    document: str = Field(description="The YAML file as text")
    file_name: str
    files: dict[str, str | BinaryFile] = Field(description="Data files by their path in the document")
    version: int


def file_shown(content: bytes) -> str | BinaryFile:
    """As a body that adds a suite has it."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return BinaryFile(base64=base64.b64encode(content).decode())


class TaskListed(BaseModel):
    task: str
    version: str
    output_type: str
    metrics: list[str]
    row_source: str
    has_code: bool = Field(description="Python code makes its rows, or what is asked of them")
    repeats: int = Field(description="Answers to each row in a run that orders no other number")


class JudgeOfSuite(BaseModel):
    model: str = Field(serialization_alias="model_id")
    prompt: str = Field(description="An installed judge prompt; correctness if it has no document either")
    has_document: bool = Field(description="The suite has a judge prompt of its own for it")
    scale: str = Field(description="That of the prompt if empty")


class SuiteListed(BaseModel):
    suite: str
    description: str
    version: int | None = Field(description="Latest version of a user's suite; else null")
    digest: str | None = Field(description="SHA-256 of a user's suite; else null")
    user: str | None = Field(description="Who added this version of a user's suite; else null")
    problem: str | None = Field(description="The problem with its files; null when it is valid")
    project_id: int = Field(description="0: none")
    project_name: ProjectName
    judges: list[JudgeOfSuite] = Field(description="Of jobs whose orders name none")
    tasks: list[TaskListed]


class SuiteList(BaseModel):
    suites: list[SuiteListed]


class SuiteAdded(BaseModel):
    suite: SuiteListed
    is_known: bool | None = Field(
        description="The same content was registered before; null when it was only validated"
    )


class ChatTurn(BaseModel):
    role: str
    content: str


class TargetShown(BaseModel):
    choice: int | None = Field(description="Index of the right choice")
    right_choices: list[int] = Field(description="All right choices, if there are several")
    texts: list[str]
    wrong_texts: list[str]


class MetricUsed(BaseModel):
    metric: str
    options: JsonValue


class SampleShown(BaseModel):
    """The exact request that a model would get."""

    suite: str
    task: str
    row: int
    prompt: str | None = Field(description="Null for a chat")
    messages: list[ChatTurn] = Field(description="Empty for a text")
    choices: list[str] = Field(description="Continuations to score, including the delimiter")
    target: TargetShown
    stop: list[str]
    max_tokens: int | None
    output_type: str
    metrics: list[MetricUsed]
    filters: JsonValue
    cluster: str | None
    digest: str
    doc: JsonValue = Field(description="The row as its source has it")
    row_source: str
    row_source_revision: str
    is_stand_in: bool
    repeats: int = Field(description="Answers to each row in a run that orders no other number")


def sample_shown(request: suite_pb2.ShowSampleRequest, response: suite_pb2.ShowSampleResponse) -> SampleShown:
    sample, scoring = response.sample, response.scoring
    return present(
        SampleShown,
        request,
        response,
        sample,
        scoring,
        row=request.doc_id,
        prompt=sample.prompt.text if sample.prompt.HasField("text") else None,
        messages=[present(ChatTurn, turn) for turn in sample.prompt.messages],
        target=present(TargetShown, sample.target),
        metrics=[
            MetricUsed(metric=use.name, options=json_value(use.options_json)) for use in scoring.metrics
        ],
        filters=json_value(scoring.filters_json),
        digest=sample.digest.hex(),
        doc=json_value(sample.doc_json),
    )
