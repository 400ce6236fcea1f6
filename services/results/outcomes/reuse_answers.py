"""Reuses stored answers of earlier runs, before any request of a run is sent."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from services.results.outcomes.ports import OutcomeStore
from services.results.outcomes.postgres import PostgresReuse
from services.results.runs.errors import RunArchived
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore


@dataclass(frozen=True, slots=True)
class ReuseAnswers:
    records: RunRecordStore
    outcomes: OutcomeStore
    answers: PostgresReuse

    async def reuse(self, run_id: str, epoch: int, environment: Mapping[str, str]) -> int:
        """Returns how many answers the run has from other runs by now; can be repeated.

        An answer is copied if request, sample and rollout are the same, and no known value of the engine
        then differs from `environment`. With an empty environment none is copied.
        """
        record = await self.records.get(run_id)
        check_epoch(record, epoch)
        for index, task in enumerate(record.plan.tasks if environment else ()):
            lacking = task.sample_count * record.plan.rollouts
            for source in await self.answers.sources(run_id, index, environment):
                # One that is archived since it was listed is passed over, as those archived before.
                with suppress(RunArchived):
                    lacking -= await self.answers.reuse(run_id, epoch, index, source)
                if lacking <= 0:
                    break
        return await self.outcomes.count_reused(run_id)
