"""Stores of results in memory, with the same promises as those in Postgres."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import cast

from proctor.values.comparison import Decision
from proctor.values.names.project import declared_or_none
from proctor.values.outcome import FailureClass, OutcomeStatus
from proctor.values.run import RunCounts, RunState, TaskCounts
from proctor.values.usage import TokenUsage
from services.common.clock import SystemClock
from services.common.sandboxes.task_code.ports import CodeFiles
from services.results.leaderboard.baseline import TaskBaselines
from services.results.leaderboard.closed_run import (
    BenchmarkBaselines,
    BenchmarkResult,
    ClosedRun,
    benchmark_result,
)
from services.results.outcomes.outcome import ScoredOutcome, replacement, supersedes
from services.results.outcomes.ports import OutcomePage
from services.results.outcomes.timing_summary import TimeBucket, TimingSummary
from services.results.runs.conditions import EvaluatedRun
from services.results.runs.errors import EpochNotOpen, EpochOver, RecordNotFound, RunIncomplete
from services.results.runs.ports import ShardOfRun
from services.results.runs.run_plan import RecordedProgress, RunPlan, RunRecord
from services.results.samples.errors import SampleSetCommitted, SampleSetIncomplete, SampleSetNotFound
from services.results.samples.sample import SampleSet, StoredSample
from services.results.scoring.score import ScoreValue, ScoringTarget, StoredValue
from services.results.statistics.columns import ScoreChunk
from services.results.summaries.ports import Stores
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.task_columns import chunk_of
from tests.fakes.results.recorded_run import timing_summary

Key = tuple[str, int, int]


@dataclass
class MemoryRows:
    """The tables."""

    samples: dict[str, dict[int, StoredSample]] = field(default_factory=dict)
    touched: dict[str, datetime] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    committed: dict[str, SampleSet] = field(default_factory=dict)
    by_content: dict[object, SampleSet] = field(default_factory=dict)
    records: dict[str, RunRecord] = field(default_factory=dict)
    outcomes: dict[Key, ScoredOutcome] = field(default_factory=dict)
    summaries: dict[tuple[str, int], RunSummary] = field(default_factory=dict)
    closed: dict[str, ClosedRun] = field(default_factory=dict)
    task_baselines: dict[str, TaskBaselines] = field(default_factory=dict)
    run_baselines: dict[str, BenchmarkBaselines] = field(default_factory=dict)
    # Tokens of failures of earlier epochs, by run.
    paid: dict[str, list[TokenUsage]] = field(default_factory=lambda: defaultdict(list))
    environments: dict[str, dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )

    def of_run(self, run_id: str) -> list[ScoredOutcome]:
        return [self.outcomes[key] for key in sorted(self.outcomes) if key[0] == run_id]

    def counted(self, run_id: str) -> list[ScoredOutcome]:
        """Answers, and failures of the present epoch."""
        epoch = self.records[run_id].epoch
        return [one for one in self.of_run(run_id) if not one.failure_class or one.epoch == epoch]


class MemorySampleSets:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    async def stage(self, staging_id: str, samples: Sequence[StoredSample]) -> None:
        if staging_id in self._rows.committed:
            raise SampleSetCommitted(sample_set_id=staging_id)
        self._rows.samples.setdefault(staging_id, {}).update({sample.position: sample for sample in samples})
        self._rows.touched[staging_id] = SystemClock().now()

    async def commit(
        self, staging_id: str, sample_count: int, project_id: int = 0, content_hash: bytes = b""
    ) -> SampleSet:
        if kept := self._rows.committed.get(staging_id):
            self._rows.touched[kept.sample_set_id] = SystemClock().now()
            return kept
        if not (staged := self._rows.samples.get(staging_id)):
            raise SampleSetNotFound(sample_set_id=staging_id)
        if sorted(staged) != list(range(sample_count)):
            raise SampleSetIncomplete(sample_set_id=staging_id, staged=len(staged), sample_count=sample_count)
        digest = hashlib.sha256(b"".join(_identity(staged[at]) for at in range(sample_count))).digest()
        key = (declared_or_none(project_id), content_hash) if content_hash else staging_id
        same = self._rows.by_content.get(key)
        kept = same if same and same.sample_set_id in self._rows.committed else SampleSet(staging_id, digest)
        self._rows.committed[staging_id] = self._rows.by_content[key] = kept
        self._rows.touched[kept.sample_set_id] = SystemClock().now()
        return kept

    async def read(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, StoredSample]:
        if sample_set_id not in self._rows.committed:
            raise SampleSetNotFound(sample_set_id=sample_set_id)
        samples = self._rows.samples[sample_set_id]
        return {position: samples[position] for position in positions if position in samples}

    async def weights(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, int]:
        found = await self.read(sample_set_id, positions)
        return {position: _weight(sample) for position, sample in found.items()}

    async def docs(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, str]:
        found = await self.read(sample_set_id, positions)
        return {position: sample.doc_json for position, sample in found.items()}

    async def targets(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, ScoringTarget]:
        found = await self.read(sample_set_id, positions)
        return {position: sample.target for position, sample in found.items()}

    async def clusters(self, sample_set_id: str) -> Mapping[int, str]:
        return {at: one.cluster for at, one in self._rows.samples[sample_set_id].items() if one.cluster}

    async def label_count(self, sample_set_id: str) -> int:
        counts = {len(sample.target.choices) for sample in self._rows.samples[sample_set_id].values()}
        return counts.pop() if len(counts) == 1 else 0

    async def delete_staged(self, kept_for: timedelta) -> int:
        rows, touched_before = self._rows, _now() - kept_for
        staged = rows.samples.keys() - rows.committed.keys()
        leftovers = [each for each in staged if rows.touched[each] < touched_before]
        for sample_set_id in leftovers:
            del rows.samples[sample_set_id]
        return len(leftovers)


def _weight(sample: StoredSample) -> int:
    said = (sample.prompt.text or "", *(turn.content for turn in sample.prompt.messages))
    return sum(len(text.encode()) for text in (*said, *sample.target.choices, *sample.target.texts))


def _identity(sample: StoredSample) -> bytes:
    """What makes a set another one: what is asked and expected, and what shares a passage."""
    return sample.digest + (hashlib.sha256(sample.cluster.encode()).digest() if sample.cluster else b"")


class MemoryRunRecords:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows
        self.codes: dict[tuple[str, str], CodeFiles] = {}

    async def open(self, plan: RunPlan, epoch: int) -> RunRecord:
        if (known := self._rows.records.get(plan.run_id)) is None:
            for task in plan.tasks:
                if task.sample_set_id not in self._rows.committed:
                    raise SampleSetNotFound(sample_set_id=task.sample_set_id)
            self._rows.records[plan.run_id] = RunRecord(plan, epoch)
        elif epoch < known.epoch:
            raise EpochOver(run_id=plan.run_id, epoch=epoch, current=known.epoch)
        elif epoch > known.epoch:
            # A retry that brings no answer leaves one that could not be scored in its place.
            self._rows.paid[plan.run_id] += [
                one.outcome.usage
                for one in self._rows.counted(plan.run_id)
                if one.failure_class not in (None, FailureClass.SCORING)
            ]
            self._rows.records[plan.run_id] = RunRecord(known.plan, epoch, decision=known.decision)
        return self._rows.records[plan.run_id]

    async def get(self, run_id: str) -> RunRecord:
        if run_id not in self._rows.records:
            raise RecordNotFound(run_id=run_id)
        return self._rows.records[run_id]

    async def find(self, run_id: str) -> RunRecord | None:
        return self._rows.records.get(run_id)

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardOfRun]) -> list[RecordedProgress]:
        return [
            self._counts(run, {shard for run_id, shard in shards if run_id == run.run_id})
            for run in runs
            if run.run_id in self._rows.records
        ]

    async def all_counts(self, run: RunPlan, *, includes_shards: bool = True) -> RecordedProgress:
        return self._counts(run, None if includes_shards else set())

    async def freeze(self, plan: RunPlan, epoch: int, state: RunState | None, *, allow_partial: bool) -> None:
        record = self._rows.records.get(plan.run_id)
        if record is None:
            raise RecordNotFound(run_id=plan.run_id)
        if epoch != record.epoch:
            error = EpochOver if epoch < record.epoch else EpochNotOpen
            raise error(run_id=plan.run_id, epoch=epoch, current=record.epoch)
        missing = plan.total - len(self._rows.counted(plan.run_id))
        if missing and not allow_partial:
            raise RunIncomplete(run_id=plan.run_id, missing=missing)
        self._rows.records[plan.run_id] = replace(record, is_frozen=True, state=state, frozen_at=_now())

    async def decide(self, run_id: str, base_run_id: str, decision: Decision) -> Decision:
        records = self._rows.records
        for each in (run_id, base_run_id):
            records[each] = replace(records[each], decision=records[each].decision or decision)
        return records[run_id].decision or decision

    async def add_code(self, run_id: str, code: Mapping[str, CodeFiles]) -> None:
        self.codes |= {(run_id, digest): files for digest, files in code.items()}

    async def code(self, run_id: str, digest: str) -> CodeFiles:
        return self.codes.get((run_id, digest), {})

    async def add_environment(self, run_id: str, environment: Mapping[str, str]) -> None:
        for name, value in environment.items():
            self._rows.environments[run_id][name].add(value)

    async def delete_unused_sets(self, kept_for: timedelta) -> int:
        rows, touched_before = self._rows, _now() - kept_for
        used = {task.sample_set_id for record in rows.records.values() for task in record.plan.tasks}
        sets = {kept.sample_set_id for kept in rows.committed.values()}
        unused = {each for each in sets - used if rows.touched[each] < touched_before}
        for name in [name for name, kept in rows.committed.items() if kept.sample_set_id in unused]:
            del rows.committed[name]
            del rows.samples[name]
        return len(unused)

    async def deleted(self) -> Sequence[str]:
        return list(self._rows.deleted)

    async def delete_deletion(self, run_id: str) -> None:
        self._rows.deleted.discard(run_id)

    async def delete(self, run_id: str) -> None:
        rows = self._rows
        rows.deleted.add(run_id)
        for table in (rows.records, rows.closed, rows.run_baselines, rows.environments):
            table.pop(run_id, None)
        for key in [key for key in rows.summaries if key[0] == run_id]:
            del rows.summaries[key]

    def _counts(self, run: RunPlan, shards: set[int] | None) -> RecordedProgress:
        record, counted = self._rows.records[run.run_id], self._rows.counted(run.run_id)
        present = [one for one in counted if one.epoch == record.epoch]
        by_shard = Counter(one.outcome.shard for one in present if not record.is_frozen)
        reported = self._rows.environments[run.run_id]
        counts = RunCounts(
            record.epoch,
            tuple(_task_counts(task.task, counted, index) for index, task in enumerate(run.tasks)),
            dict(Counter(one.failure_class for one in counted if one.failure_class)),
            {name: "; ".join(sorted(values)) for name, values in reported.items()},
            _usage([*(one.outcome.usage for one in counted), *self._rows.paid[run.run_id]]),
        )
        wanted = {shard: count for shard, count in by_shard.items() if shards is None or shard in shards}
        return RecordedProgress(run.run_id, counts, wanted)


def _usage(used: Sequence[TokenUsage]) -> TokenUsage:
    return TokenUsage(*map(sum, zip(*map(astuple, used), strict=True)))


def _task_counts(task: str, counted: Sequence[ScoredOutcome], index: int) -> TaskCounts:
    own = Counter(one.status for one in counted if one.task_index == index)
    return TaskCounts(task, own.total(), own[OutcomeStatus.FAILED], own[OutcomeStatus.UNPARSED])


class MemoryOutcomes:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows
        self.gpu_seconds_by_run: Counter[str] = Counter()

    async def record(self, outcomes: Sequence[ScoredOutcome]) -> int:
        written = 0
        for one in outcomes:
            record = self._rows.records.get(one.run_id)
            if record is None:
                continue
            stored = self._rows.outcomes.get(one.key)
            is_open = one.epoch == record.epoch and not record.is_frozen
            if is_open and (stored is None or supersedes(one, stored)):
                kept = one if stored is None else replacement(one, stored)
                # Rows keep no GPU seconds.
                self._rows.outcomes[one.key] = replace(kept, outcome=replace(kept.outcome, gpu_seconds=0.0))
                self.gpu_seconds_by_run[one.run_id] += one.outcome.gpu_seconds  # type: ignore[assignment]  # a sum
                written += 1
        return written

    async def delete(self, run_id: str) -> None:
        for key in [key for key in self._rows.outcomes if key[0] == run_id]:
            del self._rows.outcomes[key]

    async def missing(self, run: RunRecord, rollout: int, window: range) -> list[int]:
        counted = self._rows.counted(run.plan.run_id)
        done = {one.outcome.sample for one in counted if one.outcome.rollout == rollout}
        owned = {number for task in run.plan.tasks for number in range(task.first_sample, task.end_sample)}
        return [number for number in window if number in owned and number not in done]

    async def page(self, page: OutcomePage) -> list[tuple[int, int]]:
        wanted = [
            one.key[1:]
            for one in self._rows.counted(page.run_id)
            if one.key[1:] > page.after
            and one.outcome.sample < page.before_sample
            and page.status in (None, one.status)
        ]
        return wanted[: page.page_size]

    async def scores(self, run_id: str, window: range, metrics: Sequence[str]) -> AsyncIterator[ScoreChunk]:
        rows = [
            (one.outcome.sample, one.outcome.rollout, cast("Mapping[str, ScoreValue]", one.scores))
            for one in self._rows.of_run(run_id)
            if one.outcome.sample in window and not one.failure_class
        ]
        for _, of_sample in groupby(rows, key=itemgetter(0)):
            yield chunk_of(list(of_sample), metrics)

    async def time_buckets(
        self, run_id: str, window: range, width: float
    ) -> AsyncIterator[Sequence[TimeBucket]]:
        raise NotImplementedError(f"{run_id} is too small for {window} and {width}")
        yield []

    async def count_reused(self, run_id: str) -> int:
        return sum(one.is_reused for one in self._rows.of_run(run_id))

    async def stored_scores(
        self, run_id: str, window: range
    ) -> AsyncIterator[Sequence[tuple[int, Mapping[str, StoredValue]]]]:
        rows = [one for one in self._rows.of_run(run_id) if not one.failure_class]
        yield [(one.outcome.sample, one.scores) for one in rows if one.outcome.sample in window]

    async def gpu_seconds(self, run_id: str) -> float:
        return self.gpu_seconds_by_run[run_id]

    async def answering_seconds(self, run_id: str) -> float:
        answers = [one for one in self._rows.of_run(run_id) if not (one.failure_class or one.is_reused)]
        ends = [(one.recorded_at.timestamp(), one.outcome.timing) for one in answers if one.recorded_at]
        return max((end for end, _ in ends), default=0.0) - min(
            (end - timing.total_seconds for end, timing in ends), default=0.0
        )

    async def timing(self, run_id: str) -> TimingSummary:
        return timing_summary([one.outcome for one in self._rows.of_run(run_id) if not one.failure_class])


class MemorySummaries:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    async def keep(self, plan: RunPlan, summary: RunSummary, *, replaces: bool = False) -> RunSummary:
        record, rows = self._rows.records[plan.run_id], self._rows
        if record.epoch != summary.epoch or not record.is_frozen:
            return summary
        if replaces:
            rows.summaries.pop((plan.run_id, summary.epoch), None)
        if (plan.run_id, summary.epoch) not in rows.summaries and plan.facts.benchmark:
            rows.closed[plan.run_id] = _closed_run(record, benchmark_result(EvaluatedRun(plan), summary))
        return rows.summaries.setdefault((plan.run_id, summary.epoch), summary)

    async def change_state(self, plan: RunPlan, summary: RunSummary, state: RunState) -> None:
        rows = self._rows
        rows.records[plan.run_id] = record = replace(rows.records[plan.run_id], state=state)
        if plan.run_id in rows.closed:
            rows.closed[plan.run_id] = _closed_run(record, benchmark_result(EvaluatedRun(plan), summary))

    async def add_problem(self, run_id: str, epoch: int, problem: str) -> None:
        summary = self._rows.summaries[run_id, epoch]
        if problem not in summary.problems:
            problems = (*summary.problems, problem)
            self._rows.summaries[run_id, epoch] = replace(summary, problems=problems)

    async def find(self, run_id: str, epoch: int) -> RunSummary | None:
        return self._rows.summaries.get((run_id, epoch))


def _closed_run(record: RunRecord, result: BenchmarkResult) -> ClosedRun:
    run_id, facts = record.plan.run_id, record.plan.facts
    return ClosedRun(run_id, facts.benchmark, facts.model, facts.project_id, record.state, _now(), result)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # as the database's own clock


class MemoryProgress:
    """Keeps the reports."""

    def __init__(self) -> None:
        self.reports: list[RecordedProgress] = []

    async def publish(self, progress: RecordedProgress) -> None:
        self.reports.append(progress)


def memory_stores(rows: MemoryRows | None = None) -> Stores:
    rows = rows or MemoryRows()
    return Stores(
        records=MemoryRunRecords(rows),
        sample_sets=MemorySampleSets(rows),
        outcomes=MemoryOutcomes(rows),
        summaries=MemorySummaries(rows),
    )
