"""Names and settings of streams, consumers and buckets of JetStream."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A work-queue stream that refuses new messages when it is full."""

    name: str
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """A durable pull consumer."""

    stream: StreamSpec
    durable: str
    filter_subject: str
    ack_wait_seconds: float
    max_ack_pending: int
    # Requests that wait at a time; the server refuses further ones.
    max_waiting: int = 512


@dataclass(frozen=True, slots=True)
class BucketBounds:
    """Of a bucket: beyond `keys` and `total_bytes` the keys that were put first are dropped."""

    total_bytes: int
    value_bytes: int
    keys: int | None = None


@dataclass(frozen=True, slots=True)
class BucketSpec:
    """A key-value bucket; with a ttl its keys expire. Watchers are shown for a while that a key has expired.

    One with bounds is written by workers: no header of a message removes keys or keeps one beyond the ttl.
    """

    name: str
    ttl_seconds: float | None = None
    bounds: BucketBounds | None = None
    expiry_shown_seconds: float | None = None
