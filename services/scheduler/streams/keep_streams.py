"""Keeps the streams and buckets of NATS: makes missing ones, and probes whether they take messages."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proctor.values import messaging
from services.common.clock import Clock

# Each stream and bucket costs two messages then.
PROBE_SECONDS = 5.0
# Longer than a request waits for its answer.
SILENT_SECONDS = 10.0


class StreamSet(Protocol):
    """The streams and buckets that the scheduler makes."""

    @property
    def probed(self) -> Collection[str]:
        """Names of those that exist."""
        ...

    @property
    def refused(self) -> Mapping[str, str]:
        """Why the server does not make some of them, by their names."""
        ...

    @property
    def last_messages(self) -> Mapping[str, int]:
        """The sequence number of the latest message of each."""
        ...

    async def make_missing(self) -> None: ...


class Probes(Protocol):
    """Small writes to streams and buckets."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Why some take no message, by their names."""
        ...

    async def probe(self, names: Collection[str]) -> Mapping[str, int]:
        """The sequence numbers of the probes that were stored."""
        ...


@dataclass(slots=True)
class KeepStreams:
    streams: StreamSet
    probes: Probes
    clock: Clock
    _answered_at: float = field(default=float("-inf"), init=False)
    _probed_at: float = field(default=float("-inf"), init=False)
    _last_messages: Mapping[str, int] = field(default_factory=dict, init=False)

    async def keep(self) -> None:
        """Called every second. Raises an error of the connection where the server does not answer."""
        await self.streams.make_missing()
        now = self.clock.monotonic()
        # What is refused is probed each time, so that its end is noticed at once.
        if self.probes.refused or now - self._probed_at >= PROBE_SECONDS:
            await self._probe()
            # Not before: a probe without an answer is repeated a second later.
            self._probed_at = now
        self._answered_at = self.clock.monotonic()

    async def _probe(self) -> None:
        """Writes to those that nothing was written to since the last time.

        To remove a probe from a stream full of work takes the server some milliseconds.
        """
        last, known = self.streams.last_messages, self._last_messages
        quiet = [name for name in self.streams.probed if last.get(name) == known.get(name, last.get(name))]
        self._last_messages = {**last, **await self.probes.probe(quiet)}

    def refused(self) -> Mapping[str, str]:
        """Streams and buckets that cannot be used, with the reason."""
        return {**self.probes.refused, **self.streams.refused}

    @property
    def can_be_used(self) -> bool | None:
        """Whether all of them exist and take messages; None while the server does not answer."""
        return False if self.refused() else self._known()

    @property
    def can_be_written(self) -> bool | None:
        """Whether those that exist take messages; None while the server does not answer."""
        is_refused = self.probes.refused or messaging.JETSTREAM in self.streams.refused
        return False if is_refused else self._known()

    def _known(self) -> bool | None:
        return True if self.clock.monotonic() - self._answered_at < SILENT_SECONDS else None
