"""Sizes of the streams of NATS: the scheduler makes them, and the doctor computes the disk that they need."""

from collections.abc import Iterable
from math import ceil

_MIB = 1024**2
# For each pool.
WORK_STREAM_BYTES = 256 * _MIB
OUTCOME_STREAM_BYTES = 1024 * _MIB
# No stream is cut to less: a message may have 8 MiB.
MIN_STREAM_BYTES = 32 * _MIB
# All buckets together: states of runs, heartbeats and quotas. They have no size of their own.
_BUCKET_BYTES = 32 * _MIB
# nats-server gives its streams this part of the space that is free when it starts.
_STREAM_SHARE = 0.75


def disk_bytes(streams: Iterable[int]) -> int:
    """The free space in which nats-server makes streams of these sizes and the buckets."""
    return ceil((sum(streams) + _BUCKET_BYTES) / _STREAM_SHARE)
