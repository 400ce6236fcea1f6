"""Only Postgres's clock decides: a leader whose clock is hours ahead or back fails and deletes nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from proctor.v1 import run_pb2
from services.common.clock import SystemClock
from services.common.postgres import PostgresSession
from services.scheduler.leadership.postgres import PostgresClock
from services.scheduler.postgres import QUERIES
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.served_scheduler import served_scheduler

TRUE_NOW = SystemClock.now


def off_by(hours: int) -> Callable[[SystemClock], datetime]:
    return lambda clock: TRUE_NOW(clock) + timedelta(hours=hours)


class OffClock(SystemClock):
    now = off_by(-5)


async def test_time_is_that_of_postgres_and_goes_on_between_two_looks() -> None:
    async with scheduler_database() as pool:
        clock = PostgresClock(PostgresSession(pool, QUERIES), OffClock())
        await clock.sync()
        first, true = clock.now(), await pool.fetchval("SELECT clock_timestamp()")
        assert abs(first - true) < timedelta(seconds=2)
        assert first <= clock.now()
        assert first.tzinfo is UTC or first.utcoffset() == timedelta()


@pytest.mark.parametrize("hours", [4, -4])
async def test_a_clock_that_leaps_ends_no_run_and_its_times_are_true(
    hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served_scheduler(tmp_path) as stands:
        await stands.worker.send_heartbeat()
        begun = TRUE_NOW(SystemClock())
        run_id = await stands.submit()
        monkeypatch.setattr(SystemClock, "now", off_by(hours))
        ended = await stands.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED, ended.error
    assert begun <= ended.finished_at.ToDatetime(UTC) + timedelta(seconds=2)
    assert ended.finished_at.ToDatetime(UTC) < begun + timedelta(minutes=2)
