"""One clock for all replicas, that of Postgres: a machine whose own clock is off decides nothing by it."""

from datetime import datetime, timedelta
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.common.postgres import PostgresSession, PostgresTransaction
from services.common.structured_logs import get_logger

log = get_logger()

# Machines drift by less than 0.1 ms a second, so replicas differ by milliseconds between two readings.
_SYNC_SECONDS = 30.0
# Less is usual without NTP and changes nothing here; more puzzles those who read the logs of two machines.
_NOTICED_SECONDS = 5.0


class PostgresClock:
    """Postgres is asked twice a minute. In between the machine counts seconds, which no set clock moves."""

    def __init__(self, session: PostgresSession, machine: Clock) -> None:
        self._session = session
        self._machine = machine
        self._read_at = machine.monotonic()
        self._time = machine.now()

    def now(self) -> datetime:
        return self._time + timedelta(seconds=self._machine.monotonic() - self._read_at)

    def monotonic(self) -> float:
        return self._machine.monotonic()

    async def sync(self) -> None:
        async def read(transaction: PostgresTransaction) -> tuple[datetime, float]:
            asked_at = self._machine.monotonic()
            time: datetime = await transaction.fetchval("current_time")
            # Postgres read its clock between asking and answer; the middle halves the error.
            return time, (asked_at + self._machine.monotonic()) / 2

        self._time, self._read_at = await self._session.run(read)
        ahead = (self._machine.now() - self.now()).total_seconds()
        if abs(ahead) > _NOTICED_SECONDS:
            log.warning("clock of this machine differs from that of postgres", ahead_seconds=round(ahead, 1))

    async def keep(self) -> NoReturn:
        """Keeps the time, for ever."""
        await every(_SYNC_SECONDS, self.sync, name="read the clock of postgres")
