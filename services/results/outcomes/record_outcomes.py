"""Records outcomes: each is scored against its target, stored once and counted; the counts are published.

Runs are scored concurrently. Outcomes that are scored soon are recorded together. A run whose answers take
long is recorded later, and is scored in one process at a time, so it does not delay other runs.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakValueDictionary

from proctor.values.outcome import Answer, Failure, FailureClass, Outcome, OutcomeStatus
from services.results.outcomes.outcome import OutcomeBatch, ScoredOutcome, with_failure, without_duplicates
from services.results.outcomes.ports import OutcomeStore, ProgressPublisher
from services.results.outcomes.score_task import ScoreTask
from services.results.runs.ports import RunRecordStore, ShardOfRun
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.code.score_by_code import ScoreByCode
from services.results.scoring.ports import AnswerScorer, Scored, UncompiledScoring
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget

# Far more than runs are recorded at a time; a forgotten plan costs one query.
MAX_CACHED_PLANS = 1000
# Several for each run: workers differ, and so do the servers that orders name.
MAX_CACHED_ENVIRONMENTS = 10_000
# How long the outcomes of one run wait for those of others, to be recorded in one statement.
SCORING_LINGER_SECONDS = 0.2

_NO_TARGET = ScoringImpossible("the sample is not in its set")

# The number of a sample in the run, and an answer to it.
SampleAnswer = tuple[int, Answer]

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of some batches. Outcomes neither written nor unknown were duplicates, or were refused."""

    received: int = 0
    written: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class RecordOutcomes:
    """Scores outcomes and stores them. It caches the plans and environments of runs."""

    records: RunRecordStore
    sample_sets: SampleSetStore
    outcomes: OutcomeStore
    progress: ProgressPublisher
    scorer: AnswerScorer
    by_code: ScoreByCode = field(default_factory=ScoreByCode)
    # Neither can go stale: a plan never changes, and an environment once kept is kept.
    _plans: OrderedDict[str, RunPlan] = field(init=False, default_factory=OrderedDict)
    _environments: OrderedDict[tuple[str, frozenset[tuple[str, str]]], None] = field(
        init=False, default_factory=OrderedDict
    )
    _run_locks: WeakValueDictionary[str, asyncio.Lock] = field(
        init=False, default_factory=WeakValueDictionary
    )

    async def record(self, batches: Sequence[OutcomeBatch]) -> Recorded:
        """Returns when all accepted outcomes are durable. Can be repeated without harm."""
        plans = await self._plans_of(batches)
        known = [batch for batch in batches if batch.run_id in plans]
        received = sum(len(batch.outcomes) for batch in batches)
        for batch in known:
            # Before the outcomes: an answer whose engine is unknown could be reused wrongly.
            await self._keep_environment(batch)
        written = planned = 0
        # Closed also after an error, so that no scoring goes on without a reader.
        async with aclosing(self._scored(known, plans)) as rounds:
            async for scored in rounds:
                written += await self.outcomes.record(without_duplicates(scored)) if scored else 0
                planned += len(scored)
                # After the commit: a count that is ahead of the rows would make the scheduler close the run.
                await self._report(scored, plans)
        return Recorded(received, written, unknown=received - planned)

    async def _plans_of(self, batches: Sequence[OutcomeBatch]) -> Mapping[str, RunPlan]:
        plans: dict[str, RunPlan] = {}
        for run_id in {batch.run_id for batch in batches}:
            plan = self._plans.get(run_id)
            if plan is None:
                record = await self.records.find(run_id)
                if record is None:
                    continue
                plan = record.plan
                _remember(self._plans, run_id, plan, MAX_CACHED_PLANS)
            plans[run_id] = plan
        return plans

    async def _scored(
        self, batches: Sequence[OutcomeBatch], plans: Mapping[str, RunPlan]
    ) -> AsyncGenerator[list[ScoredOutcome], None]:
        """The outcomes of some runs, as soon as they are scored."""
        by_run: dict[str, list[OutcomeBatch]] = defaultdict(list)
        for batch in batches:
            by_run[batch.run_id].append(batch)
        scoring = [
            asyncio.create_task(self._score(plans[run_id], sent), name=f"score {run_id}")
            for run_id, sent in by_run.items()
        ]
        waiting = set(scoring)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=SCORING_LINGER_SECONDS)
                if done:
                    yield [one for task in done for one in task.result()]
        finally:
            # A redelivery records these outcomes: their messages were not acknowledged.
            for task in waiting:
                task.cancel()
            await asyncio.gather(*scoring, return_exceptions=True)

    async def _score(self, plan: RunPlan, batches: Sequence[OutcomeBatch]) -> list[ScoredOutcome]:
        planned = [
            (batch, outcome, index)
            for batch in batches
            for outcome in batch.outcomes
            if (index := _task_index(plan, outcome)) is not None
        ]
        by_task: dict[int, dict[int, SampleAnswer]] = defaultdict(dict)
        for number, (_, outcome, index) in enumerate(planned):
            if isinstance(outcome.result, Answer):
                by_task[index][number] = outcome.sample, outcome.result
        scores: dict[int, Scored] = {}
        for index, answers in by_task.items():
            scored = await self._score_task(plan, index, list(answers.values()))
            scores.update(zip(answers, scored, strict=True))
        return [
            _scored(batch, index, outcome, scores.get(number))
            for number, (batch, outcome, index) in enumerate(planned)
        ]

    async def _score_task(
        self, plan: RunPlan, index: int, answers: Sequence[SampleAnswer]
    ) -> Sequence[Scored]:
        scoring = plan.scorings[index]
        if scoring.is_unscored:
            return [Score("")] * len(answers)
        targets = await self._targets(plan, index, {sample for sample, _ in answers})
        known = [(sample, targets[sample], answer) for sample, answer in answers if sample in targets]
        uncompiled = UncompiledScoring(plan.tasks[index].scoring, plan.scoring_method, shared_by=plan.run_id)
        async with self._run_locks.setdefault(plan.run_id, asyncio.Lock()):
            scored = iter(await self._scoring.score(plan, index, (scoring, uncompiled), known))
        return [next(scored) if sample in targets else _NO_TARGET for sample, _ in answers]

    @property
    def _scoring(self) -> ScoreTask:
        return ScoreTask(self.records, self.sample_sets, self.scorer, self.by_code)

    async def _targets(
        self, plan: RunPlan, task_index: int, samples: set[int]
    ) -> Mapping[int, ScoringTarget]:
        """Targets, by the number of the sample in the run."""
        task = plan.tasks[task_index]
        positions = sorted(sample - task.first_sample for sample in samples)
        found = await self.sample_sets.targets(task.sample_set_id, positions)
        return {position + task.first_sample: target for position, target in found.items()}

    async def _keep_environment(self, batch: OutcomeBatch) -> None:
        reported = (batch.run_id, frozenset(batch.environment.items()))
        if batch.environment and reported not in self._environments:
            await self.records.add_environment(batch.run_id, batch.environment)
            _remember(self._environments, reported, None, MAX_CACHED_ENVIRONMENTS)

    async def _report(self, scored: Sequence[ScoredOutcome], plans: Mapping[str, RunPlan]) -> None:
        """Reports duplicates too: the recorder before may have died before it published."""
        shards: set[ShardOfRun] = {(one.run_id, one.outcome.shard) for one in scored}
        if not shards:
            return
        touched = [plans[run_id] for run_id in sorted({run_id for run_id, _ in shards})]
        for counts in await self.records.counts(touched, sorted(shards)):
            await self.progress.publish(counts)


def _task_index(plan: RunPlan, outcome: Outcome) -> int | None:
    index = plan.task_index_of(outcome.sample)
    return None if index is None or not plan.is_asked(outcome.sample, outcome.rollout) else index


def _scored(batch: OutcomeBatch, task_index: int, outcome: Outcome, scored: Scored | None) -> ScoredOutcome:
    if isinstance(scored, ScoringImpossible):
        # It keeps the answer, so that another scoring can read it later.
        message = f"The answer could not be scored: {scored}."
        outcome = with_failure(outcome, Failure(FailureClass.SCORING, message, outcome.answer))
    if not isinstance(scored, Score):
        return ScoredOutcome(batch.run_id, batch.epoch, task_index, outcome, OutcomeStatus.FAILED, "", {})
    status = OutcomeStatus.UNPARSED if scored.is_unparsed else OutcomeStatus.SCORED
    return ScoredOutcome(
        batch.run_id, batch.epoch, task_index, outcome, status, scored.prediction, scored.stored
    )


def _remember(memory: OrderedDict[K, V], key: K, value: V, maximum: int) -> None:
    memory[key] = value
    if len(memory) > maximum:
        memory.popitem(last=False)
