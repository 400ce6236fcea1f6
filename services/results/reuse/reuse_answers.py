"""Takes stored answers of earlier runs for a run that asked for it, before a model is asked anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.results.errors import RecordNotFound
from services.results.ports import OutcomeStore, RunRecordStore
from services.results.runs.list_missing import check_epoch

MOST_SOURCES = 20
"""Of the runs whose answers fit a task, so many of the latest are looked through."""


@dataclass(frozen=True, slots=True)
class Source:
    """A task of an earlier run that asked the same in the same way."""

    run_id: str
    task_index: int


class ReuseStore(Protocol):
    async def sources(self, run_id: str, task_index: int, environment: Mapping[str, str]) -> Sequence[Source]:
        """Of engines that said the same of themselves, the latest first, at most `MOST_SOURCES`."""
        ...

    async def take(self, run_id: str, epoch: int, task_index: int, source: Source) -> int:
        """Copies answers to the same samples and rollouts that the run lacks; gives how many it took.

        With their counts, in one transaction. A frozen run, or one in another epoch, takes none.
        """
        ...


class ReuseAnswers:
    def __init__(self, records: RunRecordStore, outcomes: OutcomeStore, reuse: ReuseStore) -> None:
        self._records = records
        self._outcomes = outcomes
        self._reuse = reuse

    async def __call__(self, run_id: str, epoch: int, environment: Mapping[str, str]) -> int:
        """Answers that the run has from others by now; can be repeated.

        An answer is taken where request, sample and rollout are the same, and nothing that was said of the
        engine then differs from `environment`. For an engine of which nothing is known none is taken.
        """
        record = await self._records.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        check_epoch(record, epoch)
        for index, task in enumerate(record.plan.tasks if environment else ()):
            lacking = task.sample_count * record.plan.rollouts
            for source in await self._reuse.sources(run_id, index, environment):
                lacking -= await self._reuse.take(run_id, epoch, index, source)
                if lacking <= 0:
                    break
        return await self._outcomes.count_reused(run_id)
