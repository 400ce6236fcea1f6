"""A storm of `kill -9` over all six processes, while a test's own runs go on."""

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import asyncpg

from proctor.client.errors import Unreachable
from proctor.v1 import run_pb2
from tests.chaos.faults.stack_faults import kill
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness

PROCESSES = ("worker", "scheduler", "results", "gateway", "nats", "postgres")
KILLS = int(os.environ.get("PROCTOR_STORM_KILLS", "24"))
SEED = int(os.environ.get("PROCTOR_STORM_SEED", "5"))
# Each kill waits for progress since the last: a storm in which nothing is recorded any more fails here.
MAX_RECORDED_BETWEEN = 400
PROGRESS_LIMIT_SECONDS = 120.0
RUN_LIMIT_SECONDS = 120.0 + 5.0 * KILLS
# How long a test waits for the storm, and then for the runs that are left.
STORM_LIMIT_SECONDS = 600.0 + 10.0 * KILLS

_RECORDED = "SELECT coalesce(sum(recorded), 0)::bigint FROM results.task_counts"
_ARE_CLOSED = "SELECT bool_and(is_closed) FROM scheduler.runs WHERE run_id = ANY ($1::uuid[])"


@dataclass
class KillStorm:
    stack: StackHarness
    kills: int = KILLS
    draw: random.Random = field(default_factory=lambda: random.Random(SEED))
    killed: Counter[str] = field(default_factory=Counter)
    is_over: bool = False

    async def rage(self) -> None:
        """Any process may be struck, again and again, after a drawn number of further answers."""
        for _ in range(self.kills):
            await self._progress(self.draw.randint(1, MAX_RECORDED_BETWEEN))
            name = self.draw.choice(PROCESSES)
            await kill(self.stack, name)
            self.killed[name] += 1
        self.is_over = True

    async def submitted(self, order: run_pb2.RunOrder | None = None) -> str:
        """Asked for until a gateway and a scheduler are there to take it."""
        accepted: list[str] = []

        async def is_accepted() -> bool:
            try:
                accepted.append(await self.stack.submit(order))
            except Unreachable:
                return False
            return True

        await eventually(is_accepted, "the run is accepted", PROGRESS_LIMIT_SECONDS)
        return accepted[0]

    async def _progress(self, answers: int) -> None:
        wanted = await self._recorded() + answers

        async def is_reached() -> bool:
            return await self._recorded() >= wanted

        await eventually(is_reached, f"{answers} more answers are recorded", PROGRESS_LIMIT_SECONDS)

    async def _recorded(self) -> int:
        async with self.stack.database() as database:
            return int(await database.fetchval(_RECORDED))


async def known_runs(stack: StackHarness) -> list[str]:
    async with stack.database() as database:
        return [str(row["run_id"]) for row in await database.fetch("SELECT run_id FROM scheduler.runs")]


async def until_ended(stack: StackHarness, runs: Sequence[str]) -> None:
    """Postgres is asked, again after each of its deaths: in a storm no API answers for long."""

    async def is_ended() -> bool:
        try:
            async with stack.database() as database:
                await eventually(partial(database.fetchval, _ARE_CLOSED, runs), "", RUN_LIMIT_SECONDS)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            return False
        return True

    await eventually(is_ended, f"{len(runs)} runs have ended", RUN_LIMIT_SECONDS)
