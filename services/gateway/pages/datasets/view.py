"""Views of data sets for their templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.api.datasets.mappings import MappingSaved
from services.gateway.api.datasets.routes import DatasetListed, DatasetRowShown, dataset_row
from services.gateway.pages.rows.runs import NewestRuns, RunRow
from services.gateway.pages.text import json_lines

# Parts of a body that are shown as what they are; the rest is shown as JSON.
_SHOWN = ("messages", "prompt")


@dataclass(frozen=True, slots=True)
class UploadView:
    """The form of an upload; after a refused one with the first faults of its lines, or with one sentence."""

    faults: Sequence[dataset_pb2.DatasetFault] = ()
    fault_count: int = 0
    problem: str = ""
    name: str = ""
    mapped: "MappedView | None" = None


@dataclass(frozen=True, slots=True)
class MappedView:
    """The columns of a file, the mapping as the form has it, and the first rows by it.

    It is saved under `name`; `problem` is why it cannot be.
    """

    columns: Sequence[str]
    prompt: str
    target: str
    id: str
    is_proposed: bool
    rows: Sequence["PreviewRow"]
    faults: Sequence[dataset_pb2.DatasetFault]
    name: str = ""
    problem: str = ""

    @classmethod
    def of(cls, mapping: dataset_pb2.ColumnMapping, name: str) -> "MappedView":
        """A mapping without a file."""
        fields = {"prompt": mapping.prompt, "target": mapping.target, "id": mapping.id}
        return cls(columns=(), **fields, is_proposed=False, rows=(), faults=(), name=name)


def mapped_view(shown: dataset_pb2.PreviewUploadResponse, asked: dataset_pb2.ColumnMapping) -> MappedView:
    mapping = shown.mapping if shown.HasField("mapping") else asked
    return MappedView(
        columns=list(shown.columns),
        prompt=mapping.prompt,
        target=mapping.target,
        id=mapping.id,
        is_proposed=shown.is_proposed,
        rows=[dataset_row(PreviewRow, row) for row in shown.rows],
        faults=list(shown.faults),
    )


@dataclass(frozen=True, slots=True)
class DatasetListView:
    """A page of data sets, newest first, with the mappings that are offered."""

    rows: Sequence[DatasetListed]
    total: int
    after: str
    following: str
    upload: UploadView
    saved: Sequence[MappingSaved]
    now: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """A message as a model would get it."""

    role: str
    text: str


class PreviewRow(DatasetRowShown):
    @property
    def turns(self) -> Sequence[Turn]:
        """The messages of the request, or its prompt as one."""
        body = self._fields
        messages = body.get("messages")
        turns = [_turn(each) for each in messages] if isinstance(messages, list) else []
        return [*turns, Turn("prompt", _text(body["prompt"]))] if "prompt" in body else turns

    @property
    def rest(self) -> str:
        """The other fields of the request, as JSON."""
        rest = {name: value for name, value in self._fields.items() if name not in _SHOWN}
        return json_lines(rest) if rest else ""

    @property
    def _fields(self) -> Mapping[str, Any]:
        return self.body if isinstance(self.body, dict) else {}


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A data set with some rows from `first` on, and the newest runs over it."""

    dataset: DatasetListed
    preview: Sequence[PreviewRow]
    first: int
    newest: NewestRuns
    ask: str

    @property
    def last(self) -> int:
        """The number of the last row that is shown, from 1."""
        return self.first + len(self.preview)


@dataclass(frozen=True, slots=True)
class DatasetRunsView:
    """Runs over data sets: those that are not finished, and a page of those that are."""

    unfinished: Sequence[RunRow]
    finished: Sequence[RunRow]
    total: int
    after: str
    following: str
    now: datetime

    @property
    def socket(self) -> str:
        """The address of the socket that pushes this page, up to its last parameter."""
        return f"/datasets/runs/socket?{urlencode({'after': self.after})}&"


def _turn(message: object) -> Turn:
    if not isinstance(message, dict):
        return Turn("message", json_lines(message))
    others = {name: value for name, value in message.items() if name not in {"role", "content"}}
    parts = [_text(message.get("content")), json_lines(others) if others else ""]
    return Turn(str(message.get("role", "message")), "\n".join(part for part in parts if part))


def _text(content: object) -> str:
    """The text of a message's content: a text, or parts of which some are texts."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return content if isinstance(content, str) else json_lines(content)


def _part(part: object) -> str:
    match part:
        case {"type": "text", "text": str(text)} | str(text):
            return text
        case _:
            return json_lines(part)
