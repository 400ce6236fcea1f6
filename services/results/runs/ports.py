"""Ports of run records."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from proctor.values.comparison import Decision
from proctor.values.run import RunState
from services.common.sandboxes.task_code.ports import CodeFiles
from services.results.runs.run_plan import RecordedProgress, RunPlan, RunRecord

# Run and shard.
ShardOfRun = tuple[str, int]


class RunRecordStore(Protocol):
    """Stores the records of runs."""

    async def open(self, plan: RunPlan, epoch: int) -> RunRecord:
        """Makes the record, or opens a later epoch of it; returns the record. Raises EpochOver."""
        ...

    async def add_code(self, run_id: str, code: Mapping[str, CodeFiles]) -> None:
        """Stores the code that scores answers of a run, by digest. Can be repeated without harm."""
        ...

    async def code(self, run_id: str, digest: str) -> CodeFiles:
        """Files of code; none where the run has none of this digest."""
        ...

    async def get(self, run_id: str) -> RunRecord:
        """The record of a run. Raises RecordNotFound."""
        ...

    async def find(self, run_id: str) -> RunRecord | None:
        """The record of a run; None where there is none."""
        ...

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardOfRun]) -> list[RecordedProgress]:
        """Counts of some runs, with those of the named shards only. A run that was deleted is left out."""
        ...

    async def all_counts(self, run: RunPlan, *, includes_shards: bool = True) -> RecordedProgress:
        """Counts of a run, with every shard of the present epoch if wanted. Raises RecordNotFound."""
        ...

    async def freeze(self, plan: RunPlan, epoch: int, state: RunState | None, *, allow_partial: bool) -> None:
        """Refuses outcomes from now on and stores how the run ended.

        Raises EpochOver, EpochNotOpen, and RunIncomplete unless allowed.
        """
        ...

    async def decide(self, run_id: str, base_run_id: str, decision: Decision) -> Decision:
        """Stores what is decided between two runs; returns what was stored first, of any call."""
        ...

    async def add_environment(self, run_id: str, environment: Mapping[str, str]) -> None:
        """Stores what an engine reports about itself, unless the run has very much of it."""
        ...

    async def delete_unused_sets(self, kept_for: timedelta) -> int:
        """Deletes some sample sets that no run uses, last committed so long ago; returns how many.

        Their samples go with the next sweep of sample sets.
        """
        ...

    async def delete(self, run_id: str) -> None:
        """Deletes the record and all that refers to it; its outcomes stay, and no more are accepted."""
        ...

    async def deleted(self) -> Sequence[str]:
        """Some of the deleted runs whose outcomes may still be stored."""
        ...

    async def delete_deletion(self, run_id: str) -> None:
        """Called once the outcomes of a deleted run are deleted."""
        ...
