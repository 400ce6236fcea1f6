"""A storm of `kill -9` over all six processes while runs follow each other, and then the counts.

`make test` kills processes in other files. `PROCTOR_STORM_KILLS=300 PROCTOR_STORM_SEED=7` is a longer storm.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import asyncpg
import pytest

from proctor.client.errors import Unreachable
from tests.chaos.faults.faulted_run import ROWS, FaultedRun, made_ready
from tests.chaos.faults.run_audit import assert_recorded_right
from tests.chaos.faults.stack_faults import kill
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness

PROCESSES = ("worker", "scheduler", "results", "gateway", "nats", "postgres")
KILLS = int(os.environ.get("PROCTOR_STORM_KILLS", "24"))
SEED = int(os.environ.get("PROCTOR_STORM_SEED", "5"))
RUNS_AT_ONCE = 3
# Each kill waits for progress since the last: a storm in which nothing is recorded any more fails here.
MAX_RECORDED_BETWEEN = 400
PROGRESS_LIMIT_SECONDS = 120.0
RUN_LIMIT_SECONDS = 120.0 + 5.0 * KILLS
# How long the test waits for the storm, and then for the runs that are left.
STORM_LIMIT_SECONDS = 600.0 + 10.0 * KILLS

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(STORM_LIMIT_SECONDS),
]

_RECORDED = "SELECT coalesce(sum(recorded), 0)::bigint FROM results.task_counts"
_ARE_CLOSED = "SELECT bool_and(is_closed) FROM scheduler.runs WHERE run_id = ANY ($1::uuid[])"


@dataclass
class Storm:
    stack: StackHarness
    kills: int
    draw: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    accepted: list[str] = field(default_factory=list)
    is_over: bool = False

    async def rage(self) -> None:
        """Any process may be struck, again and again, after a drawn number of further answers."""
        for _ in range(self.kills):
            await self._progress(self.draw.randint(1, MAX_RECORDED_BETWEEN))
            name = self.draw.choice(PROCESSES)
            await kill(self.stack, name)
            self.killed[name] += 1
        self.is_over = True

    async def runs(self) -> None:
        """One run after another until the storm is over."""
        while not self.is_over:
            self.accepted.append(await self._submitted())
            await until_ended(self.stack, self.accepted[-1:])

    async def _submitted(self) -> str:
        """Asked for until a gateway and a scheduler are there to take it."""
        accepted: list[str] = []

        async def is_accepted() -> bool:
            try:
                accepted.append(await self.stack.submit())
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


@pytest.mark.thorough
async def test_nothing_is_lost_or_doubled_in_a_storm_of_kills(stack: StackHarness) -> None:
    await made_ready(stack)
    earlier = set(await known_runs(stack))
    storm = Storm(stack, KILLS, random.Random(SEED))
    async with asyncio.TaskGroup() as group:
        group.create_task(storm.rage())
        for _ in range(RUNS_AT_ONCE):
            group.create_task(storm.runs())
    counted = f"seed {SEED}: killed {dict(storm.killed)}, {len(storm.accepted)} runs of {ROWS} accepted"
    print(counted)  # noqa: T201  # what a long storm is run for
    assert storm.killed.total() == KILLS, counted
    # A submission whose answer was lost may have left a run beside those accepted: it counts as well.
    runs = [run_id for run_id in await known_runs(stack) if run_id not in earlier]
    assert set(storm.accepted) <= set(runs), "lost"
    await until_ended(stack, runs)
    for run_id in runs:
        await assert_recorded_right(FaultedRun(stack, run_id, ROWS), RUN_LIMIT_SECONDS)


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
