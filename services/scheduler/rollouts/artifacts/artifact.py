"""Artifacts of rollouts: what workers store while an agent works, part by part."""

from dataclasses import dataclass
from datetime import datetime

from proctor.values.rollout import DIFF, FILES, LOG, MAX_PARTS, PART_BYTES, TRAJECTORY, is_execution
from proctor.values.run import RunId
from services.scheduler.runs.lifecycle.run import artifacts_prefix

NAMES = frozenset({TRAJECTORY, FILES, DIFF, LOG})
# Maximum number of executions of a rollout with artifacts. It begins anew when a worker ends or a shard is
# sent again, each a few times at most.
MAX_EXECUTIONS = 16


@dataclass(frozen=True, slots=True)
class ArtifactPart:
    """The part of an artifact. `execution`: a rollout that began anew, in another worker, has several."""

    run_id: RunId
    sample: int
    rollout: int
    execution: str
    name: str
    part: int = 0

    @property
    def key(self) -> str:
        """Its place in the object store."""
        folder = f"{artifacts_prefix(self.run_id)}/{self.sample}-{self.rollout}/{self.execution}"
        return f"{folder}/{self.name}-{self.part:02}"

    @property
    def has_a_name(self) -> bool:
        """Whether there can be such an artifact."""
        return self.name in NAMES and is_execution(self.execution)

    def problem(self, size_bytes: int) -> str:
        """Why a worker may not store it; empty where it may."""
        if not self.has_a_name:
            return f"there is no {self.name[:40]!r}."
        if size_bytes > PART_BYTES or not 0 <= self.part < MAX_PARTS:
            return f"it has more than {MAX_PARTS} parts of {PART_BYTES:,} bytes."
        return ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """`size_bytes` of all parts."""

    execution: str
    name: str
    size_bytes: int
    parts: int
    stored_at: datetime
