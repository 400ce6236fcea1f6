"""Stored runs as they are listed, and what earlier runs have used."""

from collections.abc import Sequence
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.progress.run_counts import ProgressReport
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.run_list import PastUsage, RunCursor, RunFilter, RunPage


class RunLists(Protocol):
    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage: ...

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        """Token counts of the last completed runs of its suite and settings; of any model if need be."""
        ...


class RecordedCounts(Protocol):
    """Counts that results keeps."""

    async def counts(self, run_id: RunId) -> ProgressReport: ...
