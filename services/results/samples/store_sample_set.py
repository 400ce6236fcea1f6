"""Stores rendered samples, staged chunk by chunk and committed as a whole set; reads them for a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from proctor.values.sample import MAX_READ_SAMPLES
from proctor.values.scoring import TaskScoring
from services.common.checked_fields import invalid_field
from services.results.samples.errors import SampleNotFound, UnfitTarget
from services.results.samples.ports import SampleReader, SampleSetStore
from services.results.samples.sample import SampleSet, StoredSample
from services.results.scoring.compiled_scoring import CompiledScoring, InvalidScoring, compile_scoring
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.text_metrics import check_target

# SHA-256.
DIGEST_BYTES = 32
SampleForm = TypeVar("SampleForm")


@dataclass(frozen=True, slots=True)
class StoreSampleSet:
    sample_sets: SampleSetStore

    async def stage(
        self, staging_id: str, samples: Sequence[StoredSample], scoring: TaskScoring | None = None
    ) -> None:
        """Stages samples. With a scoring, those that it cannot score are refused."""
        for sample in samples:
            if len(sample.digest) != DIGEST_BYTES:
                raise invalid_field(f"digest of sample {sample.position}", "must have 32 bytes")
            if sample.position < 0:
                raise invalid_field("position", "must be 0 or more")
        if scoring is not None:
            # In a thread: a target may be a long pattern.
            await asyncio.to_thread(_check_targets, _read(scoring), samples)
        if samples:
            await self.sample_sets.stage(staging_id, samples)

    async def commit(
        self, staging_id: str, sample_count: int, project_id: int = 0, content_hash: bytes = b""
    ) -> SampleSet:
        if sample_count < 1:
            raise invalid_field("sample_count", "must be 1 or more: a set has at least one sample")
        if len(content_hash) not in (0, DIGEST_BYTES):
            raise invalid_field("content_hash", f"must have {DIGEST_BYTES} bytes, or none")
        return await self.sample_sets.commit(staging_id, sample_count, project_id, content_hash)


def _read(scoring: TaskScoring) -> CompiledScoring:
    try:
        return compile_scoring(scoring)
    except InvalidScoring as error:
        raise invalid_field("scoring", f"cannot be read: {error}") from error


def _check_targets(scoring: CompiledScoring, samples: Sequence[StoredSample]) -> None:
    # Many rows have the same few targets.
    fitting: set[tuple[str, ...]] = set()
    for sample in samples:
        if sample.target.texts in fitting:
            continue
        for metric in scoring.metrics:
            try:
                check_target(metric, sample.target)
            except ScoringImpossible as error:
                raise UnfitTarget(
                    doc_id=sample.position, row_id=sample.row_id, metric=metric.name, problem=str(error)
                ) from error
        fitting.add(sample.target.texts)


@dataclass(frozen=True, slots=True)
class ReadSamples(Generic[SampleForm]):
    """Samples stay in the form in which the reader has them."""

    samples: SampleReader[SampleForm]

    async def read(self, sample_set_id: str, positions: Sequence[int]) -> list[SampleForm]:
        if len(positions) > MAX_READ_SAMPLES:
            raise invalid_field("positions", f"must be at most {MAX_READ_SAMPLES}")
        found = await self.samples.read(sample_set_id, positions)
        for position in positions:
            if position not in found:
                raise SampleNotFound(sample_set_id=sample_set_id, position=position)
        return [found[position] for position in positions]
