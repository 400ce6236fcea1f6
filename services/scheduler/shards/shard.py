"""A shard: a handful of samples of one task and one rollout, sent to a worker as one message."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """`samples` are run-global numbers still to be asked; `size` counts those it was cut with.

    `size` never changes: results counts a shard's outcomes over all of its attempts.
    """

    number: int
    task_index: int
    rollout: int
    samples: Sequence[int]
    size: int
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class FilledShard:
    """A shard with its samples, as it goes out: one message, or several where the samples are heavy."""

    shard: Shard
    payloads: Sequence[bytes]
