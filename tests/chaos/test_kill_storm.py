"""A storm of `kill -9` over all six processes while runs follow each other, and then the counts.

The short form belongs to `make test-chaos`; `PROCTOR_STORM_KILLS=300 PROCTOR_STORM_SEED=7` makes it long.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from proctor.client.errors import Unreachable
from tests.chaos.faults.faulted_run import ROWS, FaultedRun, made_ready
from tests.chaos.faults.run_audit import assert_recorded_right
from tests.chaos.faults.stack_faults import faulted_stack, kill
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROCESSES = ("worker", "scheduler", "results", "gateway", "nats", "postgres")
KILLS = int(os.environ.get("PROCTOR_STORM_KILLS", "24"))
SEED = int(os.environ.get("PROCTOR_STORM_SEED", "5"))
RUNS_AT_ONCE = 3
# Each kill waits for progress since the last: a storm in which nothing is recorded any more fails here.
MOST_RECORDED_BETWEEN = 400
PROGRESS_LIMIT_SECONDS = 120.0
RUN_LIMIT_SECONDS = 120.0 + 5.0 * KILLS

_RECORDED = "SELECT coalesce(sum(recorded), 0)::bigint FROM results.task_counts"
_UNENDED = "SELECT count(*) FROM scheduler.runs WHERE NOT is_closed"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    async with faulted_stack() as stack:
        yield stack


@dataclass
class Storm:
    stack: StackHarness
    draw: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    audited: int = 0
    is_over: bool = False

    async def rage(self) -> None:
        """Any process may be struck, again and again, after a drawn number of further answers."""
        for _ in range(KILLS):
            await self._progress(self.draw.randint(1, MOST_RECORDED_BETWEEN))
            name = self.draw.choice(PROCESSES)
            await kill(self.stack, name)
            self.killed[name] += 1
        self.is_over = True

    async def runs(self) -> None:
        """One run after another until the storm is over, each counted at its end."""
        while not self.is_over:
            run = FaultedRun(self.stack, await self._submitted(), ROWS)
            await assert_recorded_right(run, RUN_LIMIT_SECONDS)
            self.audited += 1

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


async def test_nothing_is_lost_or_doubled_in_a_storm_of_kills(stack: StackHarness) -> None:
    await made_ready(stack)
    storm = Storm(stack, random.Random(SEED))
    async with asyncio.TaskGroup() as group:
        group.create_task(storm.rage())
        for _ in range(RUNS_AT_ONCE):
            group.create_task(storm.runs())
    counted = f"seed {SEED}: killed {dict(storm.killed)}, counted {storm.audited} runs of {ROWS}"
    print(counted)  # noqa: T201  # what a long storm is run for
    assert storm.killed.total() == KILLS, counted
    await until_all_ended(stack)


async def until_all_ended(stack: StackHarness) -> None:
    """A submission whose answer was lost may have left a run beside those counted: it ends as well."""
    async with stack.database() as database:

        async def all_ended() -> bool:
            return bool(await database.fetchval(_UNENDED) == 0)

        await eventually(all_ended, "every run has ended", RUN_LIMIT_SECONDS)
