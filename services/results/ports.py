"""What the use cases need of the outside."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.results.outcomes.outcome import OutcomeStatus, ScoredOutcome
from services.results.runs.run_counts import RunCounts
from services.results.runs.run_record import RunPlan, RunRecord
from services.results.runs.run_summary import RunCosts, RunSummary
from services.results.samples.sample_set import Sample, SampleSet
from services.results.scoring import LabelPair, Target

ScoredRow = tuple[int, int, Mapping[str, float | LabelPair]]
"""Sample, rollout and scores of an answer."""

ShardKey = tuple[str, int]
"""Run and shard."""


class SampleSetStore(Protocol):
    """Keeps sample sets. Every call can be repeated without harm."""

    async def stage(self, staging_id: str, samples: Sequence[Sample]) -> None:
        """Keeps samples aside; those at the same positions are replaced. Raises SampleSetCommitted."""
        ...

    async def commit(self, staging_id: str, sample_count: int) -> SampleSet:
        """Makes the set readable, or drops it for the committed set with the same digests."""
        ...

    async def read(self, set_id: str, positions: Sequence[int]) -> Mapping[int, Sample]:
        """Samples by position; raises SampleSetNotFound."""
        ...

    async def weights(self, set_id: str, positions: Sequence[int]) -> Mapping[int, int]:
        """Bytes of each sample, nearly, by position."""
        ...

    async def targets(self, set_id: str, positions: Sequence[int]) -> Mapping[int, Target]:
        """What is expected, by position; positions that are not there are left out."""
        ...

    async def clusters(self, set_id: str) -> Mapping[int, str]:
        """The passage of each sample that shares one, by position."""
        ...

    async def sweep(self, touched_before: datetime) -> int:
        """Drops sets never committed whose last chunk came before a moment; gives how many."""
        ...


class RunRecordStore(Protocol):
    """Keeps the records of runs."""

    async def open(self, plan: RunPlan, epoch: int) -> RunRecord:
        """Makes the record, or opens a later epoch of it; gives what is recorded. Raises EpochOver."""
        ...

    async def find(self, run_id: str) -> RunRecord | None:
        """The record of a run."""
        ...

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardKey]) -> list[RunCounts]:
        """Counts of some runs, with those of the named shards only."""
        ...

    async def all_counts(self, run: RunPlan) -> RunCounts:
        """Counts of a run with every shard of the present epoch."""
        ...

    async def freeze(self, plan: RunPlan, epoch: int, *, allow_partial: bool) -> None:
        """Refuses outcomes from now on. Raises EpochOver, EpochNotOpen, and RunIncomplete unless allowed."""
        ...

    async def keep_summary(self, summary: RunSummary) -> RunSummary:
        """Keeps the figures of a frozen epoch; gives the ones that were kept first."""
        ...

    async def find_summary(self, run_id: str, epoch: int) -> RunSummary | None:
        """The figures kept for an epoch."""
        ...

    async def add_environment(self, run_id: str, environment: Mapping[str, str]) -> None:
        """Keeps what an engine says of itself."""
        ...


@dataclass(frozen=True, slots=True)
class OutcomePage:
    """Which outcomes: after a (sample, rollout), before a sample, of a status where one is given."""

    run_id: str
    after: tuple[int, int]
    before_sample: int
    page_size: int
    status: OutcomeStatus | None = None


class OutcomeStore(Protocol):
    """Keeps outcomes, once each."""

    async def record(self, outcomes: Sequence[ScoredOutcome]) -> int:
        """Records what is new and counts it in one transaction; gives how many rows changed.

        Outcomes of a frozen run or of another epoch than the present one are refused in silence. No key may
        occur twice in an epoch.
        """
        ...

    async def missing(self, run: RunRecord, rollout: int, window: range) -> list[int]:
        """Samples of a window of numbers that have no final outcome of a rollout in the run's epoch."""
        ...

    async def page(self, page: OutcomePage) -> list[ScoredOutcome]:
        """Outcomes by sample and rollout. Failures of earlier epochs count as missing and are left out."""
        ...

    def scores(self, run_id: str, window: range) -> AsyncIterator[Sequence[ScoredRow]]:
        """Chunks of what the answers to a window of sample numbers scored, by sample and rollout."""
        ...

    async def costs(self, run_id: str) -> RunCosts:
        """Tokens and times of a run."""
        ...


class ProgressPublisher(Protocol):
    """Tells whoever listens how far a run is. Lost reports are made good by asking for the counts."""

    async def publish(self, counts: RunCounts) -> None: ...


@dataclass(frozen=True, slots=True)
class Stores:
    """All that results keeps."""

    records: RunRecordStore
    sample_sets: SampleSetStore
    outcomes: OutcomeStore
