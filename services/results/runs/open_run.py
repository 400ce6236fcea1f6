"""Makes or reopens the record of a run for an epoch; from then on outcomes of earlier epochs are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from services.common.checked_fields import invalid_field
from services.common.sandboxes.task_code.ports import CodeFiles
from services.results.runs.errors import EpochNotOpen, EpochOver
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.scoring.compiled_scoring import InvalidScoring


@dataclass(frozen=True, slots=True)
class OpenRun:
    records: RunRecordStore

    async def open(self, plan: RunPlan, epoch: int, code: Mapping[str, CodeFiles] | None = None) -> RunRecord:
        """The plan counts only for a run that is not known yet. `code` is by the digests that it names."""
        if plan.rollouts < 1:
            raise invalid_field("rollouts", "must be 1 or more")
        if plan.row_rollouts and len(plan.row_rollouts) != plan.end_sample:
            raise invalid_field("row_rollouts", "must have a number for each sample")
        check_plan(plan)
        record = await self.records.open(plan, epoch)
        if code:
            await self.records.add_code(plan.run_id, code)
        return record


def check_plan(plan: RunPlan) -> None:
    """Refuses what cannot be scored, before any request is sent."""
    try:
        assert len(plan.scorings) == len(plan.tasks)
    except InvalidScoring as error:
        raise invalid_field("scoring", f"cannot be read: {error}") from error
    ordered = sorted(plan.tasks, key=lambda task: (task.first_sample, task.sample_count))
    for before, after in pairwise(ordered):
        if after.first_sample < before.end_sample:
            raise invalid_field(f"first_sample of {after.task}", f"lies within the samples of {before.task}")


def check_epoch(record: RunRecord, epoch: int) -> None:
    """Raises unless the epoch is the present one."""
    error = EpochOver if epoch < record.epoch else EpochNotOpen
    if epoch != record.epoch:
        raise error(run_id=record.plan.run_id, epoch=epoch, current=record.epoch)
