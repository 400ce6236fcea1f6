"""Suites and their samples over HTTP.
Suites, samples and what is wrong with a document, from their messages.
"""

import base64
import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, WithJsonSchema

from proctor.v1 import sample_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from services.gateway.errors.gateway_errors import SuiteFault
from services.gateway.http.fields import Text
from services.gateway.http.presentation import output_word


def _content(given: object) -> bytes:
    """One kind or the other, told apart here so that what is wrong is named once and by its file."""
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
        raise ValueError(f"it is no base64: {error}") from error


# Written out, since the description of the body stands where references do not lead.
_CONTENT_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "description": "A file that is no text, such as Parquet",
            "required": ["base64"],
            "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
            "additionalProperties": False,
        },
    ]
}

Content = Annotated[bytes, PlainValidator(_content), WithJsonSchema(_CONTENT_SCHEMA)]


class NewSuite(BaseModel):
    """A suite of your own, with the data files that it names."""

    model_config = ConfigDict(extra="forbid")

    document: Text = Field(min_length=1, description="The YAML file as text")
    file_name: Text = Field(default="", max_length=255, description="What it is called, for messages")
    files: dict[Text, Content] = Field(
        default_factory=dict, description="Data files by the path under which the document names them"
    )

    def to_document(self) -> suite_pb2.SuiteDocument:
        return suite_pb2.SuiteDocument(text=self.document, file_name=self.file_name, files=self.files)


class TaskListed(BaseModel):
    task: str
    version: str
    output_type: str
    metrics: list[str]
    dataset: str


class SuiteListed(BaseModel):
    suite: str
    description: str
    version: int | None = Field(description="Latest version of a suite that a user brought; else null")
    digest: str | None = Field(description="SHA-256 of what a user brought; else null")
    problem: str | None = Field(description="What is wrong with its files; null when it can be run")
    tasks: list[TaskListed]


class SuiteList(BaseModel):
    suites: list[SuiteListed]


class SuiteAdded(BaseModel):
    suite: SuiteListed
    is_known: bool | None = Field(
        description="The same content was registered before; null where it was only checked"
    )


class SuiteMessage(BaseModel):
    message: str


class ChatTurn(BaseModel):
    role: str
    content: str


class Expected(BaseModel):
    choice: int | None = Field(description="Index of the right choice")
    right_choices: list[int] = Field(description="All right choices where several are right")
    texts: list[str]
    wrong_texts: list[str]


class MetricUsed(BaseModel):
    metric: str
    options: JsonValue


class SampleShown(BaseModel):
    """What a model would be asked, to the last blank."""

    suite: str
    task: str
    row: int
    prompt: str | None = Field(description="Null for a chat")
    messages: list[ChatTurn] = Field(description="Empty for a text")
    choices: list[str] = Field(description="Continuations to weigh, delimiter included")
    expected: Expected
    stop: list[str]
    max_tokens: int | None
    output_type: str
    metrics: list[MetricUsed]
    filters: JsonValue
    cluster: str | None
    digest: str
    document: JsonValue = Field(description="The row as its source gave it")
    dataset: str
    dataset_revision: str
    is_stand_in: bool


def suite_listed(suite: scheduler_pb2.SuiteInfo) -> SuiteListed:
    return SuiteListed(
        suite=suite.suite,
        description=suite.description,
        version=suite.version or None,
        digest=suite.digest or None,
        problem=suite.problem or None,
        tasks=[_task_listed(task) for task in suite.tasks],
    )


def suite_fault(problem: suite_pb2.SuiteProblem) -> SuiteFault:
    return SuiteFault(problem.file, problem.line, problem.key, problem.problem)


def sample_shown(request: suite_pb2.ShowSampleRequest, response: suite_pb2.ShowSampleResponse) -> SampleShown:
    sample, scoring = response.sample, response.scoring
    return SampleShown(
        suite=request.suite,
        task=request.task,
        row=request.row,
        prompt=sample.prompt.text if sample.prompt.HasField("text") else None,
        messages=[ChatTurn(role=turn.role, content=turn.content) for turn in sample.prompt.messages],
        choices=list(sample.choices),
        expected=_expected(sample.target),
        stop=list(response.stop),
        max_tokens=response.max_tokens or None,
        output_type=output_word(scoring.output_type),
        metrics=[MetricUsed(metric=use.name, options=_json(use.options_json)) for use in scoring.metrics],
        filters=_json(scoring.filters_json),
        cluster=sample.cluster or None,
        digest=sample.digest.hex(),
        document=_json(sample.doc_json),
        dataset=response.dataset,
        dataset_revision=response.dataset_revision,
        is_stand_in=response.is_stand_in,
    )


def _task_listed(task: scheduler_pb2.TaskInfo) -> TaskListed:
    return TaskListed(
        task=task.task,
        version=task.version,
        output_type=output_word(task.output_type),
        metrics=list(task.metrics),
        dataset=task.dataset,
    )


def _expected(target: sample_pb2.Target) -> Expected:
    return Expected(
        choice=target.choice if target.HasField("choice") else None,
        right_choices=list(target.right_choices),
        texts=list(target.texts),
        wrong_texts=list(target.wrong_texts),
    )


def _json(text: str) -> JsonValue:
    """Null where there is none, and for the NaN that a source may have written."""
    value: JsonValue = json.loads(text, parse_constant=lambda _: None) if text else None
    return value
