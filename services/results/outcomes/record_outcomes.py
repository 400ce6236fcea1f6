"""Records outcomes: each is scored against its target, stored once and counted; the counts are published.

Runs are scored concurrently. Outcomes that are scored soon are recorded together. A run with slow patterns is
recorded later, and uses one thread at a time, so it does not delay other runs.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from proctor.values.outcome import Answer, Failure, FailureClass, OutcomeStatus
from services.results.outcomes.outcome import (
    Outcome,
    OutcomeBatch,
    ScoredOutcome,
    with_failure,
    without_duplicates,
)
from services.results.outcomes.ports import OutcomeStore, ProgressPublisher
from services.results.runs.ports import RunRecordStore, ShardKey
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.answer import ScoringImpossible, Target
from services.results.scoring.score_answer import score_answer

MOST_REMEMBERED_PLANS = 1000
MOST_REMEMBERED_ENVIRONMENTS = 10_000
SCORING_THREADS = 8
# How long the outcomes of one run wait for those of others, to be recorded in one statement.
SCORING_PATIENCE_SECONDS = 0.2

_NOTHING_EXPECTED = Target()

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of some batches. Outcomes neither written nor unknown were duplicates, or were rejected."""

    received: int = 0
    written: int = 0
    unknown: int = 0


class RecordOutcomes:
    def __init__(
        self,
        records: RunRecordStore,
        sample_sets: SampleSetStore,
        outcomes: OutcomeStore,
        progress: ProgressPublisher,
    ) -> None:
        self._records = records
        self._sample_sets = sample_sets
        self._outcomes = outcomes
        self._progress = progress
        # Neither can go stale: a plan never changes, and an environment once kept is kept.
        self._plans: OrderedDict[str, RunPlan] = OrderedDict()
        self._environments: OrderedDict[tuple[str, frozenset[tuple[str, str]]], None] = OrderedDict()
        self._threads = ThreadPoolExecutor(SCORING_THREADS, "scoring")
        self._run_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def record(self, batches: Sequence[OutcomeBatch]) -> Recorded:
        """Returns when all accepted outcomes are durable. Can be repeated without harm."""
        plans = await self._plans_of(batches)
        known = [batch for batch in batches if batch.run_id in plans]
        received = sum(len(batch.outcomes) for batch in batches)
        for batch in known:
            await self._keep_environment(batch)
        written = placed = 0
        async with aclosing(self._scored(known, plans)) as rounds:
            async for scored in rounds:
                written += await self._outcomes.record(without_duplicates(scored)) if scored else 0
                placed += len(scored)
                await self._report(scored, plans)
        return Recorded(received, written, unknown=received - placed)

    async def _plans_of(self, batches: Sequence[OutcomeBatch]) -> Mapping[str, RunPlan]:
        plans: dict[str, RunPlan] = {}
        for run_id in {batch.run_id for batch in batches}:
            plan = self._plans.get(run_id)
            if plan is None:
                record = await self._records.find(run_id)
                if record is None:
                    continue
                plan = record.plan
                _remember(self._plans, run_id, plan, MOST_REMEMBERED_PLANS)
            plans[run_id] = plan
        return plans

    async def _scored(
        self, batches: Sequence[OutcomeBatch], plans: Mapping[str, RunPlan]
    ) -> AsyncGenerator[list[ScoredOutcome], None]:
        """The outcomes of some runs, as soon as they are scored."""
        by_run: dict[str, list[OutcomeBatch]] = defaultdict(list)
        for batch in batches:
            by_run[batch.run_id].append(batch)
        scoring = [asyncio.ensure_future(self._score(plans[run_id], sent)) for run_id, sent in by_run.items()]
        waiting = set(scoring)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=SCORING_PATIENCE_SECONDS)
                if done:
                    yield [one for task in done for one in task.result()]
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*scoring, return_exceptions=True)

    async def _score(self, plan: RunPlan, batches: Sequence[OutcomeBatch]) -> list[ScoredOutcome]:
        placed = [
            (batch, outcome, index)
            for batch in batches
            for outcome in batch.outcomes
            if (index := _task_index(plan, outcome)) is not None
        ]
        wanted: dict[int, set[int]] = defaultdict(set)
        for _, outcome, index in placed:
            if not isinstance(outcome.result, Failure) and not plan.scorings[index].is_unscored:
                wanted[index].add(outcome.sample)
        targets = {index: await self._targets(plan, index, samples) for index, samples in wanted.items()}

        def scored() -> list[ScoredOutcome]:
            return [
                _scored(batch, plan, index, outcome, targets.get(index, {}))
                for batch, outcome, index in placed
            ]

        # Texts are read by regexes and compared, which may take milliseconds; log-probabilities never do.
        if all(plan.scorings[index].is_loglikelihood for index in wanted):
            return scored()
        async with self._run_locks.setdefault(plan.run_id, asyncio.Lock()):
            return await asyncio.get_running_loop().run_in_executor(self._threads, scored)

    async def _targets(self, plan: RunPlan, task_index: int, samples: set[int]) -> Mapping[int, Target]:
        """What is expected, by the number of the sample in the run."""
        task = plan.tasks[task_index]
        positions = sorted(sample - task.first_sample for sample in samples)
        found = await self._sample_sets.targets(task.sample_set_id, positions)
        return {position + task.first_sample: target for position, target in found.items()}

    async def _keep_environment(self, batch: OutcomeBatch) -> None:
        said = (batch.run_id, frozenset(batch.environment.items()))
        if batch.environment and said not in self._environments:
            await self._records.add_environment(batch.run_id, batch.environment)
            _remember(self._environments, said, None, MOST_REMEMBERED_ENVIRONMENTS)

    async def _report(self, scored: Sequence[ScoredOutcome], plans: Mapping[str, RunPlan]) -> None:
        """Also for duplicates: the recorder before may have died before it published."""
        shards: set[ShardKey] = {(one.run_id, one.outcome.shard) for one in scored}
        if not shards:
            return
        touched = [plans[run_id] for run_id in sorted({run_id for run_id, _ in shards})]
        for counts in await self._records.counts(touched, sorted(shards)):
            await self._progress.publish(counts)


def _task_index(plan: RunPlan, outcome: Outcome) -> int | None:
    return plan.task_index_of(outcome.sample) if 0 <= outcome.rollout < plan.rollouts else None


def _scored(
    batch: OutcomeBatch, plan: RunPlan, task_index: int, outcome: Outcome, targets: Mapping[int, Target]
) -> ScoredOutcome:
    result = outcome.result
    if isinstance(result, Failure):
        return _failed(batch, task_index, outcome)
    scoring = plan.scorings[task_index]
    try:
        target = _NOTHING_EXPECTED if scoring.is_unscored else targets[outcome.sample]
        score = score_answer(scoring, target, result)
    except (ScoringImpossible, KeyError) as error:
        return _failed(batch, task_index, _unscored(outcome, result, error))
    status = OutcomeStatus.UNPARSED if score.is_unparsed else OutcomeStatus.SCORED
    return ScoredOutcome(
        batch.run_id, batch.epoch, task_index, outcome, status, score.prediction, score.scores
    )


def _failed(batch: OutcomeBatch, task_index: int, outcome: Outcome) -> ScoredOutcome:
    return ScoredOutcome(batch.run_id, batch.epoch, task_index, outcome, OutcomeStatus.FAILED, "", {})


def _unscored(outcome: Outcome, answer: Answer, error: Exception) -> Outcome:
    """A failure that keeps the answer, so that another scoring can read it later."""
    failure = Failure(FailureClass.SCORING, f"The answer could not be scored: {error}.", answer)
    return with_failure(outcome, failure)


def _remember(memory: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    memory[key] = value
    if len(memory) > most:
        memory.popitem(last=False)
