"""Streams and buckets of NATS that cannot be used, by their names, with the reason that the server gives."""

from collections.abc import Callable, Mapping

from proctor.values import messaging

# As they are at this moment.
RefusedStreams = Callable[[], Mapping[str, str]]


def awaited_stream(pool: str, refused: Mapping[str, str]) -> str | None:
    """Why a run of the pool waits; None if nothing that it needs is refused."""
    others = _names_of("")
    for name, reason in refused.items():
        if name in _names_of(pool) or not name.startswith(others):
            return f"waiting for NATS, which refuses {name}: {reason}"
    return None


def _names_of(pool: str) -> tuple[str, ...]:
    """Names of what each pool has one of; for the pool "" what they begin with."""
    buckets = (
        messaging.heartbeat_bucket_name(pool),
        messaging.switch_bucket_name(pool),
        messaging.quarantine_bucket_name(pool),
    )
    return messaging.work_stream_name(pool), *(f"KV_{bucket}" for bucket in buckets)
