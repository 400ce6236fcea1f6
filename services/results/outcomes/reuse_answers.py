"""Takes stored answers of earlier runs for a run that asked for it, before a model is asked anything."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.results.outcomes.ports import OutcomeStore, ReuseStore
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore


@dataclass(frozen=True, slots=True)
class ReuseAnswers:
    records: RunRecordStore
    outcomes: OutcomeStore
    answers: ReuseStore

    async def reuse(self, run_id: str, epoch: int, environment: Mapping[str, str]) -> int:
        """Answers that the run has from others by now; can be repeated.

        An answer is taken where request, sample and rollout are the same, and nothing that was said of the
        engine then differs from `environment`. For an engine of which nothing is known none is taken.
        """
        record = await self.records.get(run_id)
        check_epoch(record, epoch)
        for index, task in enumerate(record.plan.tasks if environment else ()):
            lacking = task.sample_count * record.plan.rollouts
            for source in await self.answers.sources(run_id, index, environment):
                lacking -= await self.answers.take(run_id, epoch, index, source)
                if lacking <= 0:
                    break
        return await self.outcomes.count_reused(run_id)
