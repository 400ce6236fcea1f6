"""Lists of runs: what is asked for, and a page of them, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.values.run import RunKind, RunState
from proctor.values.usage import TokenUsage
from services.scheduler.runs.admission.run_estimate import CompletedRun
from services.scheduler.runs.lifecycle.run import Run


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Unset fields filter nothing. `id_prefix`: hexadecimal digits without dashes; `name`: a part of one.

    `days`: ordered in the last so many, by the clock of Postgres.
    """

    state: RunState | None = None
    benchmark: str = ""
    model: str = ""
    project_id: int | None = None
    kind: RunKind | None = None
    dataset_id: str = ""
    id_prefix: str = ""
    name: str = ""
    tag: str = ""
    days: int = 0
    # Of any of these, and any of these runs.
    models: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunCursor:
    """The last run of a page: the next one begins behind it. `total` is what the first page counted."""

    created_at: datetime
    run_id: str
    total: int


@dataclass(frozen=True, slots=True)
class RunPage:
    """`total` counts what matches over all pages, as it was at the first; only that one has `completed`."""

    runs: Sequence[Run]
    total: int
    completed: int = 0


@dataclass(frozen=True, slots=True)
class PastUsage:
    """A completed run and its token counts."""

    run: CompletedRun
    usage: TokenUsage
