"""Ports of answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.results.answers.marks import Mark
from services.results.answers.outcome_filter import OutcomeMatch, OutcomeSort
from services.results.outcomes.outcome import OutcomeKey, ScoredOutcome


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
