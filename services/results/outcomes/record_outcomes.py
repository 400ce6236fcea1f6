"""Outcomes come in: each is scored against its target, recorded once, counted, and the counts are told."""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from services.results.outcomes.outcome import (
    Failure,
    FailureClass,
    Outcome,
    OutcomeBatch,
    OutcomeStatus,
    ScoredOutcome,
    with_failure,
    without_duplicates,
)
from services.results.ports import ProgressPublisher, ShardKey, Stores
from services.results.runs.run_record import RunPlan
from services.results.scoring import ScoringImpossible, Target, score_answer

MOST_REMEMBERED_PLANS = 1000
MOST_REMEMBERED_ENVIRONMENTS = 10_000

K = TypeVar("K")
V = TypeVar("V")

_Place = tuple[str, int]
"""Run and place of a task in it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of some batches. What is neither written nor unknown was a duplicate, or was refused."""

    received: int = 0
    written: int = 0
    unknown: int = 0


class RecordOutcomes:
    def __init__(self, stores: Stores, progress: ProgressPublisher) -> None:
        self._stores = stores
        self._progress = progress
        # Neither can go stale: a plan never changes, and an environment once kept is kept.
        self._plans: OrderedDict[str, RunPlan] = OrderedDict()
        self._environments: OrderedDict[tuple[str, frozenset[tuple[str, str]]], None] = OrderedDict()

    async def __call__(self, batches: Sequence[OutcomeBatch]) -> Recorded:
        """Returns when all that is to be kept is durable. Can be repeated without harm."""
        plans = await self._plans_of(batches)
        known = [batch for batch in batches if batch.run_id in plans]
        received = sum(len(batch.outcomes) for batch in batches)
        scored = await self._score(known, plans)
        written = await self._stores.outcomes.record(without_duplicates(scored)) if scored else 0
        for batch in known:
            await self._keep_environment(batch)
        await self._report(scored, plans)
        return Recorded(received, written, unknown=received - len(scored))

    async def _plans_of(self, batches: Sequence[OutcomeBatch]) -> Mapping[str, RunPlan]:
        plans: dict[str, RunPlan] = {}
        for run_id in {batch.run_id for batch in batches}:
            plan = self._plans.get(run_id)
            if plan is None:
                record = await self._stores.records.find(run_id)
                if record is None:
                    continue
                plan = record.plan
                _remember(self._plans, run_id, plan, MOST_REMEMBERED_PLANS)
            plans[run_id] = plan
        return plans

    async def _score(
        self, batches: Sequence[OutcomeBatch], plans: Mapping[str, RunPlan]
    ) -> list[ScoredOutcome]:
        placed = [
            (batch, outcome, index)
            for batch in batches
            for outcome in batch.outcomes
            if (index := _task_index(plans[batch.run_id], outcome)) is not None
        ]
        wanted: dict[_Place, set[int]] = defaultdict(set)
        for batch, outcome, index in placed:
            if not isinstance(outcome.result, Failure):
                wanted[batch.run_id, index].add(outcome.sample)
        targets = {place: await self._targets(plans, place, samples) for place, samples in wanted.items()}
        return [
            _scored(batch, plans[batch.run_id], index, outcome, targets.get((batch.run_id, index), {}))
            for batch, outcome, index in placed
        ]

    async def _targets(
        self, plans: Mapping[str, RunPlan], place: _Place, samples: set[int]
    ) -> Mapping[int, Target]:
        """What is expected, by the number of the sample in the run."""
        task = plans[place[0]].tasks[place[1]]
        positions = sorted(sample - task.first_sample for sample in samples)
        found = await self._stores.sample_sets.targets(task.sample_set_id, positions)
        return {position + task.first_sample: target for position, target in found.items()}

    async def _keep_environment(self, batch: OutcomeBatch) -> None:
        said = (batch.run_id, frozenset(batch.environment.items()))
        if batch.environment and said not in self._environments:
            await self._stores.records.add_environment(batch.run_id, batch.environment)
            _remember(self._environments, said, None, MOST_REMEMBERED_ENVIRONMENTS)

    async def _report(self, scored: Sequence[ScoredOutcome], plans: Mapping[str, RunPlan]) -> None:
        """Also where all were duplicates: whoever recorded them may have died before telling."""
        shards: set[ShardKey] = {(one.run_id, one.outcome.shard) for one in scored}
        if not shards:
            return
        touched = [plans[run_id] for run_id in sorted({run_id for run_id, _ in shards})]
        for counts in await self._stores.records.counts(touched, sorted(shards)):
            await self._progress.publish(counts)


def _task_index(plan: RunPlan, outcome: Outcome) -> int | None:
    return plan.task_index_of(outcome.sample) if 0 <= outcome.rollout < plan.rollouts else None


def _scored(
    batch: OutcomeBatch, plan: RunPlan, task_index: int, outcome: Outcome, targets: Mapping[int, Target]
) -> ScoredOutcome:
    result = outcome.result
    if isinstance(result, Failure):
        return _failed(batch, task_index, outcome)
    try:
        score = score_answer(plan.scorings[task_index], targets[outcome.sample], result.answer)
    except (ScoringImpossible, KeyError) as error:
        return _failed(batch, task_index, _unusable(outcome, error))
    status = OutcomeStatus.UNPARSED if score.is_unparsed else OutcomeStatus.SCORED
    return ScoredOutcome(
        batch.run_id, batch.epoch, task_index, outcome, status, score.prediction, score.scores
    )


def _failed(batch: OutcomeBatch, task_index: int, outcome: Outcome) -> ScoredOutcome:
    return ScoredOutcome(batch.run_id, batch.epoch, task_index, outcome, OutcomeStatus.FAILED, "", {})


def _unusable(outcome: Outcome, error: Exception) -> Outcome:
    """An answer that does not fit its sample is a fault of whoever brought it, not a wrong answer."""
    reason = f"The answer does not fit the sample: {error}."
    failure = Failure(FailureClass.PROVIDER_ERROR, reason)
    return with_failure(outcome, failure)


def _remember(memory: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    memory[key] = value
    if len(memory) > most:
        memory.popitem(last=False)
