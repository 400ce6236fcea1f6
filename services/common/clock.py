"""Time as a port: services ask a clock, tests bring their own."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time of day, and a monotonic one."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        ...


class ServerClock:
    """The time of a server that this process talks to, whatever the clock of the machine says.

    Until the server's time is learned, the machine's time is used. Afterwards the monotonic clock counts on.
    """

    def __init__(self) -> None:
        # Relative to the monotonic clock, so it does not matter if an operator sets the machine's clock.
        self._ahead_of_monotonic = time.time() - time.monotonic()
        self.learned_at: float | None = None

    def learn(self, server_time: datetime) -> None:
        self.learned_at = time.monotonic()
        self._ahead_of_monotonic = server_time.timestamp() - self.learned_at

    @property
    def machine_ahead_seconds(self) -> float:
        """How far the machine's own clock is ahead of the server's; below 0 where it is behind."""
        return time.time() - time.monotonic() - self._ahead_of_monotonic

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.monotonic() + self._ahead_of_monotonic, tz=UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), tz=UTC)

    def monotonic(self) -> float:
        return time.monotonic()
