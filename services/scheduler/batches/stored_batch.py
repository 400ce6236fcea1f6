"""A batch of the OpenAI protocol: a run over a file, and the files of what came back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType
from uuid import UUID

from services.scheduler.files.stored_file import FileId
from services.scheduler.runs.run import Run, RunId

BatchId = NewType("BatchId", str)

_BATCH_ID = re.compile(r"batch_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """What is asked of a batch, as its maker says it. `output_expires_after_seconds` None: its files stay."""

    input_file_id: FileId
    endpoint: str
    completion_window: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    output_expires_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class BatchProblem:
    """Why a batch fails: `param` is a field, "" the whole line; `line` counts from 1, 0 is the whole file."""

    code: str
    message: str
    param: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """What a batch has written, at `finalized_at`: no file where there is nothing to write in it."""

    finalized_at: datetime
    output_file_id: FileId | None = None
    error_file_id: FileId | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """`run` is None, and `problems` say why, where it failed before it had one; then it has no lines."""

    batch_id: BatchId
    user: str
    order: BatchOrder
    created_at: datetime
    total: int = 0
    run: Run | None = None
    problems: Sequence[BatchProblem] = ()
    files: BatchFiles | None = None


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Newest first."""

    batches: Sequence[Batch]
    has_more: bool


def is_batch_id(text: str) -> bool:
    return _BATCH_ID.fullmatch(text) is not None


def run_id_of(batch_id: BatchId) -> RunId:
    """The run of a batch has the same 32 digits."""
    return RunId(str(UUID(batch_id.removeprefix("batch_"))))
