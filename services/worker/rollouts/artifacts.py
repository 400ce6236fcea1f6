"""Stores the artifacts of a rollout as they are made: those of a worker that ends later remain."""

import asyncio
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.rollout import FILES, MAX_PARTS, PART_BYTES, TRAJECTORY
from services.common.clock import Clock
from services.worker.rollouts.errors import ArtifactNotStored
from services.worker.rollouts.ports import ArtifactSink
from services.worker.rollouts.trajectory import Trajectory

# A trajectory is stored again while an agent works.
_CHECKPOINT_SECONDS = 15.0
_MAX_BYTES = PART_BYTES * MAX_PARTS


@dataclass(slots=True)
class Artifacts:
    """Artifacts of one execution. A failed upload does not fail the rollout; the record says why the artifact
    is missing."""

    sink: ArtifactSink | None
    clock: Clock
    stored: dict[str, int] = field(default_factory=dict)
    problem: str = ""
    _is_over: bool = False
    _checkpoint_at: float = 0.0

    @property
    def facts(self) -> Mapping[str, object]:
        """Fields of the record: the execution, and the bytes of each artifact that is stored whole."""
        if self.sink is None:
            return {}
        facts = {"execution": self.sink.execution, "artifacts": self.stored}
        return {**facts, "artifacts_problem": self.problem} if self.problem else facts

    async def checkpoint(self, trajectory: Trajectory) -> None:
        """Stores the trajectory so far, now and then."""
        now = self.clock.monotonic()
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + _CHECKPOINT_SECONDS
            await self.store_trajectory(trajectory)

    async def store_trajectory(self, trajectory: Trajectory) -> None:
        # A model may write half a character, which JSON can hold and UTF-8 cannot.
        shown = json.dumps(trajectory.as_json(), ensure_ascii=False).encode("utf-8", "replace")
        await self.store(TRAJECTORY, shown)

    async def store_files(self, tar: bytes) -> None:
        if self.sink is None or self._is_over:
            return
        # Compression takes a second, in which other samples of the worker go on.
        packed = await asyncio.to_thread(_packed, tar)
        if packed is None:
            self.problem = f"{FILES} has more than {_MAX_BYTES:,} bytes, and is not stored."
            return
        await self.store(FILES, packed)

    async def store(self, name: str, content: bytes) -> None:
        if self.sink is None or self._is_over or not content:
            return
        if len(content) > _MAX_BYTES:
            self.problem = f"{name} has {len(content):,} bytes, more than are stored."
            return
        try:
            for part, start in enumerate(range(0, len(content), PART_BYTES)):
                await self.sink.put(name, part, content[start : start + PART_BYTES])
        except ArtifactNotStored as error:
            self.problem, self._is_over = str(error), error.is_final
            return
        self.stored[name] = len(content)


def _packed(tar: bytes) -> bytes | None:
    """The tar compressed by gzip; None, without the rest of the work, where that is more than is stored."""
    packer, packed = zlib.compressobj(level=1, wbits=31), bytearray()
    for start in range(0, len(tar), PART_BYTES):
        packed += packer.compress(tar[start : start + PART_BYTES])
        if len(packed) > _MAX_BYTES:
            return None
    return bytes(packed + packer.flush())
