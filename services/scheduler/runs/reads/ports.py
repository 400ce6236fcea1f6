"""Ports by which runs are read."""

from collections.abc import Sequence
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.progress.progress_tracker import ProgressReport
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.run_list import PastUsage, RunCursor, RunFilter, RunPage


class RunLists(Protocol):
    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage: ...

    async def model_names(self, name: str) -> Sequence[str]:
        """Full names of ordered models that have the name, with their provider or without; "" for all."""
        ...

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        """Token counts of the last completed runs of its benchmark and settings; of any model if need be."""
        ...


class RecordedCounts(Protocol):
    """Counts that results keeps."""

    async def counts(self, run_id: RunId) -> ProgressReport: ...
