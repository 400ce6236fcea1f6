"""Ports of answers."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.results.answers.marks import GoldenAnswer, Mark, MarkChange, MarkCounts
from services.results.answers.outcome_filter import OutcomeMatch, OutcomeSort
from services.results.answers.side_by_side import PositionedSample, SamePosition
from services.results.outcomes.outcome import ListedOutcome, OutcomeKey, ScoredOutcome
from services.results.runs.run_plan import RunPlan


@dataclass(frozen=True, slots=True)
class KeyScan:
    """Outcomes of a run after a key, before a sample; or only those with a mark."""

    run_id: str
    after: OutcomeKey
    before_sample: int
    limit: int
    mark: Mark | None = None


# The value that an outcome is sorted by, negative where the largest come first, and its key.
SortedKey = tuple[float, OutcomeKey]


@dataclass(frozen=True, slots=True)
class SortedScan:
    """Outcomes of a range of samples in the order of a value, after one of them; None begins at the first."""

    run_id: str
    samples: range
    sort: OutcomeSort
    after: SortedKey | None
    limit: int


@dataclass(frozen=True, slots=True)
class Matched:
    """Indexes in a list of keys that match; only the first `judged` of the list were looked at."""

    indexes: Sequence[int]
    judged: int


class AnswerStore(Protocol):
    """Looks through recorded outcomes. What a call costs is bounded by what it is given."""

    async def keys(self, scan: KeyScan) -> list[OutcomeKey]:
        """Keys in order, also of outcomes that count no more."""
        ...

    async def sorted_keys(self, scan: SortedScan, wanted: OutcomeMatch) -> list[SortedKey]:
        """Keys in order of the outcomes that count and match, not filtered by text or id of the row.

        Reads the range as a whole, so what a call costs grows with it.
        """
        ...

    async def match(
        self, run_id: str, keys: Sequence[OutcomeKey], wanted: OutcomeMatch, max_bytes: int
    ) -> Matched:
        """Which of some outcomes match. Texts are read up to so many bytes, and those of one outcome more."""
        ...

    async def weights(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, int]:
        """Bytes of what `read` would give, nearly."""
        ...

    async def read(
        self, run_id: str, keys: Sequence[OutcomeKey], *, is_brief: bool = False
    ) -> list[ScoredOutcome]:
        """Reads in the order of the keys; those that are not there, or count no more, are left out.

        `is_brief`: answers have no text, choices or body, and other texts only a beginning.
        """
        ...

    async def digests(self, run_id: str, samples: Sequence[int]) -> Mapping[int, str | None]:
        """Digests of the first answer to each sample, without white space at its ends; None for failures."""
        ...

    async def marks(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, Mark]:
        """The marks of those of some answers that have one."""
        ...


class SameSampleStore(Protocol):
    """Finds the samples of one set in another."""

    async def at_same_position(
        self, sample_set_id: str, other_id: str, window: range
    ) -> Mapping[int, SamePosition]:
        """Samples by position: what each is, and whether the other set has it there."""
        ...

    async def by_digest(
        self, sample_set_id: str, digests: Sequence[bytes], max_of_each: int
    ) -> list[PositionedSample]:
        """Positions of some samples in a set; of each no more than so many."""
        ...

    async def has_any(self, sample_set_id: str, other_id: str) -> bool:
        """Whether the sets have a sample in common."""
        ...


class MarkStore(Protocol):
    """Keeps marks on answers."""

    async def positions(self, sample_set_id: str, row_ids: Sequence[str]) -> Mapping[str, int]:
        """Positions of rows by their ids; unknown ids are left out."""
        ...

    async def mark(self, run_id: str, keys: Sequence[OutcomeKey], mark: Mark | None, user: str) -> MarkCounts:
        """Sets the mark of all answers, or fails and sets none; None removes marks. Returns those of the run.

        Raises OutcomeNotFound, FailureNotMarked, and RecordNotFound where the run is deleted meanwhile.
        """
        ...

    async def changes(self, run_id: str, size: int, before: int | None) -> list[MarkChange]:
        """Changes of a run's marks, latest first; only those with a number below `before`."""
        ...

    async def golden_page(self, run_id: str, after: OutcomeKey, limit: int) -> list[GoldenAnswer]:
        """Golden answers of a run by sample and rollout."""
        ...


class ListedOutcomes(Protocol):
    """Recorded outcomes on their way into files."""

    def chunks(
        self, plan: RunPlan, task_index: int, *, has_docs: bool
    ) -> AsyncIterator[Sequence[ListedOutcome]]:
        """Yields by sample and rollout, a few megabytes at a time.

        Source rows of samples only where requested.
        """
        ...
