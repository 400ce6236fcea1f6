"""Ports of outcomes: stores and the progress feed."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proctor.values.outcome import OutcomeStatus
from services.results.outcomes.outcome import ScoredOutcome
from services.results.outcomes.timing_summary import TimeBucket, TimingSummary
from services.results.runs.run_plan import RecordedProgress, RunRecord
from services.results.scoring.score import StoredValue
from services.results.statistics.columns import ScoreChunk

# The most earlier runs whose answers are considered for a task, the latest first.
MAX_SOURCES = 20


@dataclass(frozen=True, slots=True)
class OutcomePage:
    """Selects outcomes after a (sample, rollout) and before a sample, with one status where it is given."""

    run_id: str
    after: tuple[int, int]
    before_sample: int
    page_size: int
    status: OutcomeStatus | None = None


class OutcomeStore(Protocol):
    """Stores outcomes, once each."""

    async def record(self, outcomes: Sequence[ScoredOutcome]) -> int:
        """Records what is new and counts it in one transaction; returns how many rows changed.

        Outcomes of a frozen run or of another epoch than the present one are ignored. No key may
        occur twice in an epoch.
        """
        ...

    async def delete(self, run_id: str) -> None:
        """Removes the outcomes of a run whose record is gone, a few at a time."""
        ...

    async def missing(self, run: RunRecord, rollout: int, window: range) -> list[int]:
        """Samples of a window of numbers that have no final outcome of a rollout in the run's epoch."""
        ...

    async def page(self, page: OutcomePage) -> list[tuple[int, int]]:
        """Outcomes as sample and rollout, in order. Failures of earlier epochs are missing and left out."""
        ...

    def scores(self, run_id: str, window: range, metrics: Sequence[str]) -> AsyncIterator[ScoreChunk]:
        """Scores of the answers to a window of sample numbers, by sample and rollout.

        All answers to a sample are in one chunk.
        """
        ...

    async def count_reused(self, run_id: str) -> int:
        """How many answers of a run were copied from other runs."""
        ...

    def stored_scores(
        self, run_id: str, window: range
    ) -> AsyncIterator[Sequence[tuple[int, Mapping[str, StoredValue]]]]:
        """What answers score, with values of code, by the numbers of their samples."""
        ...

    async def gpu_seconds(self, run_id: str) -> float:
        """GPU time of a run's outcomes, with that of failures which were asked again."""
        ...

    async def answering_seconds(self, run_id: str) -> float:
        """From a run's first answered request to its last outcome, without reused ones; 0 without any."""
        ...

    async def timing(self, run_id: str) -> TimingSummary:
        """Over the answers that models gave in this run, without reused ones."""
        ...

    def time_buckets(self, run_id: str, window: range, width: float) -> AsyncIterator[Sequence[TimeBucket]]:
        """The same answers counted by the logarithm of each time; a bucket may come several times."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A task of an earlier run that sent the same requests."""

    run_id: str
    task_index: int


class ProgressPublisher(Protocol):
    """Publishes progress of runs. A subscriber that misses a report can read the counts instead."""

    async def publish(self, progress: RecordedProgress) -> None: ...
