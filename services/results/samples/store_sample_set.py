"""Keeps what the scheduler renders: staged chunk by chunk, committed as a whole, read back in ranges."""

from collections.abc import Sequence
from datetime import timedelta

from services.common.clock import Clock
from services.results.errors import InvalidField, SampleNotFound
from services.results.ports import SampleSetStore
from services.results.samples.sample_set import Sample, SampleSet

DIGEST_BYTES = 32
MOST_POSITIONS = 1024
# A run is opened once all of its sets are committed: the planning of a large suite may take hours.
KEEP_UNUSED = timedelta(hours=6)


class StoreSampleSet:
    def __init__(self, sample_sets: SampleSetStore, clock: Clock, keep_staged: timedelta) -> None:
        self._sample_sets = sample_sets
        self._clock = clock
        self._keep_staged = keep_staged

    async def stage(self, staging_id: str, samples: Sequence[Sample]) -> None:
        for sample in samples:
            if len(sample.digest) != DIGEST_BYTES:
                raise InvalidField(field=f"digest of sample {sample.position}", problem="must have 32 bytes")
            if sample.position < 0:
                raise InvalidField(field="position", problem="must be 0 or more")
        if samples:
            await self._sample_sets.stage(staging_id, samples)

    async def commit(self, staging_id: str, sample_count: int) -> SampleSet:
        if sample_count < 1:
            raise InvalidField(field="sample_count", problem="must be 1 or more: an empty set is no set")
        return await self._sample_sets.commit(staging_id, sample_count)

    async def read(self, set_id: str, positions: Sequence[int]) -> list[Sample]:
        """Samples in the order asked for."""
        if len(positions) > MOST_POSITIONS:
            raise InvalidField(field="positions", problem=f"must be at most {MOST_POSITIONS}")
        found = await self._sample_sets.read(set_id, positions)
        for position in positions:
            if position not in found:
                raise SampleNotFound(sample_set_id=set_id, position=position)
        return [found[position] for position in positions]

    async def sweep(self) -> int:
        """Drops what a planning that died has left behind, and what no run has any more."""
        now = self._clock.now()
        return await self._sample_sets.sweep(now - self._keep_staged) + await self._sample_sets.sweep_unused(
            now - KEEP_UNUSED
        )
