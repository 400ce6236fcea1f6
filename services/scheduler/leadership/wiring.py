"""Joins the election with the loops that only a leader runs."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import NoReturn

from services.common.lifecycle import BackgroundLoops
from services.scheduler.leadership.leader_election import FencingToken, lead_when_elected
from services.scheduler.leadership.postgres import PostgresLeaderElection
from services.scheduler.metrics import LEADING
from services.scheduler.postgres import SCHEMA
from services.scheduler.settings import SchedulerSettings

LeaderLoops = Callable[[FencingToken], Mapping[str, Coroutine[None, None, None]]]


async def lead(settings: SchedulerSettings, *, loops_of: LeaderLoops) -> NoReturn:
    """Waits to be elected, runs the loops while the term lasts, and waits again."""
    election = PostgresLeaderElection(dsn=settings.postgres_dsn, schema=SCHEMA)
    await lead_when_elected(election, partial(_lead_once, loops_of))


async def _lead_once(loops_of: LeaderLoops, token: FencingToken) -> None:
    with LEADING.track_inprogress():
        loops = BackgroundLoops(loops=loops_of(token))
        try:
            await loops.wait_failed()
        finally:
            await loops.cancel()
