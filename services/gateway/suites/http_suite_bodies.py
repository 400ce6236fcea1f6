"""Suites and their samples over HTTP."""

import base64
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, WithJsonSchema

from proctor.v1 import suite_service_pb2 as suite_pb2
from services.gateway.http_text import Text


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
