"""Ports of sample sets."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

from services.results.samples.sample import SampleSet, StoredSample
from services.results.scoring.score import ScoringTarget

SampleForm_co = TypeVar("SampleForm_co", covariant=True)


class SampleReader(Protocol[SampleForm_co]):
    """Reads samples in some form."""

    async def read(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, SampleForm_co]:
        """Samples by position; raises SampleSetNotFound."""
        ...


class SampleSetStore(SampleReader[StoredSample], Protocol):
    """Stores sample sets. Every call can be repeated without harm."""

    async def stage(self, staging_id: str, samples: Sequence[StoredSample]) -> None:
        """Stores samples, in place of those at their positions. Raises SampleSetCommitted."""
        ...

    async def commit(
        self, staging_id: str, sample_count: int, project_id: int = 0, content_hash: bytes = b""
    ) -> SampleSet:
        """Makes the set readable, or deletes it for one of the same hash.

        `content_hash`: SHA-256 over all that is stored of the samples; empty for a set that is shared with
        none. Sets of a declared project are its own.
        """
        ...

    async def weights(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, int]:
        """Approximate size of each sample in bytes, by position."""
        ...

    async def targets(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, ScoringTarget]:
        """Targets by position; unknown positions are left out."""
        ...

    async def docs(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, str]:
        """The rows of samples as JSON, by position; unknown positions are left out."""
        ...

    async def clusters(self, sample_set_id: str) -> Mapping[int, str]:
        """The passage of each sample that shares one with others, by position."""
        ...

    async def label_count(self, sample_set_id: str) -> int:
        """How many choices every sample has; 0 where that differs, or there are none."""
        ...

    async def delete_staged(self, kept_for: timedelta) -> int:
        """Deletes uncommitted sets without a chunk for so long, and samples of sets that are gone.

        Returns how many sets were deleted.
        """
        ...
