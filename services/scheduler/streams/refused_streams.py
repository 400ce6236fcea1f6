"""Streams and buckets of NATS that cannot be used, by their names, with the reason that the server gives."""

from collections.abc import Callable, Mapping

from proctor.values import messaging

# As they are at this moment.
RefusedStreams = Callable[[], Mapping[str, str]]


def awaited_stream(pool: str, refused: Mapping[str, str]) -> str | None:
    """Why a run of the pool waits; None if nothing that it needs is refused."""
    others = messaging.work_stream_name("")
    own = messaging.work_stream_name(pool)
    for name, reason in refused.items():
        if name == own or not name.startswith(others):
            return f"waiting for NATS, which refuses {name}: {reason}"
    return None
