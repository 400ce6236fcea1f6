"""Many users who order many runs at once: what they order and do meanwhile, and what is seen of the queue."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from proctor.client import errors as client_errors
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness, keyed_order

RETRY_SECONDS = 0.1
LIMIT_SECONDS = 300.0
LOOK_SECONDS = 0.01
ASK_EVERY_SECONDS = 2.0


@dataclass(frozen=True)
class Habit:
    """Orders of a class of users."""

    priority: run_pb2.Priority.ValueType
    samples: int


# A class is the first word of its users' names.
HABITS: Mapping[str, Habit] = MappingProxyType(
    {
        "urgent": Habit(run_pb2.PRIORITY_HIGH, 16),
        "light": Habit(run_pb2.PRIORITY_NORMAL, 16),
        "heavy": Habit(run_pb2.PRIORITY_NORMAL, 320),
        "background": Habit(run_pb2.PRIORITY_LOW, 64),
    }
)
MAX_SAMPLES = max(habit.samples for habit in HABITS.values())


@dataclass(frozen=True)
class Crowd:
    """So many users of each class, each with so many runs; of every ten some are paused, some cancelled."""

    users_of_class: int
    runs_each: int
    paused_of_ten: int = 2
    cancelled_of_ten: int = 1

    @property
    def users(self) -> list[str]:
        return [f"{kind} {number}" for kind in HABITS for number in range(self.users_of_class)]


@dataclass
class Tally:
    """Answers that the users got, and their actions.

    `cancels` are those that were confirmed; the answer to others of `unwanted` may have got lost.
    """

    accepted: list[str] = field(default_factory=list)
    refused: int = 0
    pauses: int = 0
    resumes: int = 0
    cancels: int = 0
    unwanted: set[str] = field(default_factory=set)


@dataclass
class Watched:
    """The most that any look at Postgres has seen: runs that have a slot, and of one user those that wait.

    `most_new` leaves out those that had a slot before and were preempted: they wait over the limit.
    """

    looks: int = 0
    most_running: int = 0
    most_pending: int = 0
    most_new: int = 0


@dataclass(frozen=True)
class Forecast:
    """The forecast of a waiting run at a time."""

    run_id: str
    asked_at: float
    seconds: float
    low: float
    high: float


_LOOK = """
WITH waiting AS (
    SELECT count(*) AS pending, count(*) FILTER (WHERE started_at IS NULL) AS new_ones
      FROM scheduler.runs WHERE state = 'pending' GROUP BY username
)
SELECT (SELECT count(*) FROM scheduler.runs WHERE state = 'running' AND NOT is_closing) AS running,
       (SELECT coalesce(max(pending), 0) FROM waiting) AS pending,
       (SELECT coalesce(max(new_ones), 0) FROM waiting) AS new_ones
"""


async def submit_all(stack: StackHarness, crowd: Crowd) -> Tally:
    """All users at once, each all of their runs at once, and one more than they may have waiting."""
    tally = Tally()

    async def order(client: ProctorClient, habit: Habit) -> None:
        wanted = keyed_order(limit=habit.samples, priority=habit.priority)
        try:
            tally.accepted.append(
                (await client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=wanted))).run.run_id
            )
        except client_errors.Refused as refused:
            if refused.reason != "QUEUE_FULL":
                raise
            tally.refused += 1

    async def be_user(user: str) -> None:
        habit = HABITS[user.split(maxsplit=1)[0]]
        async with ProctorClient(stack.stack.gateway_grpc, user=user) as client:
            async with asyncio.TaskGroup() as group:
                for _ in range(crowd.runs_each):
                    group.create_task(order(client, habit))
            await order(client, habit)

    async with asyncio.TaskGroup() as group:
        for user in crowd.users:
            group.create_task(be_user(user))
    return tally


async def stir(stack: StackHarness, crowd: Crowd, tally: Tally, seed: int = 4) -> None:
    """Pauses some runs, resumes them after a while, cancels others; each in its own time."""
    rng = random.Random(seed)
    run_ids = rng.sample(tally.accepted, len(tally.accepted))
    paused = len(run_ids) * crowd.paused_of_ten // 10
    cancelled = len(run_ids) * crowd.cancelled_of_ten // 10
    seconds = [rng.uniform(0.0, len(run_ids) / 10) for _ in run_ids]

    async def pause(run_id: str, after: float) -> None:
        await asyncio.sleep(after)
        if await _refusal(lambda: stack.client.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))):
            return
        tally.pauses += 1
        await asyncio.sleep(after / 4)
        await eventually(lambda: is_resumed(run_id), "there is room to resume", LIMIT_SECONDS)
        tally.resumes += 1

    async def is_resumed(run_id: str) -> bool:
        """Over the limit of what may wait it is refused."""
        return (
            await _refusal(lambda: stack.client.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id)))
            != "QUEUE_FULL"
        )

    async def cancel(run_id: str, after: float) -> None:
        await asyncio.sleep(after)
        tally.unwanted.add(run_id)
        tally.cancels += not await _refusal(
            lambda: stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
        )

    timed = list(zip(run_ids, seconds, strict=True))
    pauses = (pause(*each) for each in timed[:paused])
    cancels = (cancel(*each) for each in timed[paused : paused + cancelled])
    async with asyncio.TaskGroup() as group:
        for each in (*pauses, *cancels):
            group.create_task(each)


async def _refusal(call: Callable[[], Awaitable[object]]) -> str:
    """The reason, or nothing where it was done; asked again where the scheduler was away."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            await call()
        except client_errors.Unreachable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(RETRY_SECONDS)
        except client_errors.Refused as refused:
            return refused.reason
        else:
            return ""


async def watch_limits(stack: StackHarness, watched: Watched) -> None:
    """Looks at the rows themselves, each time in one statement, until cancelled."""
    async with stack.database() as database:
        while True:
            row = await database.fetchrow(_LOOK)
            assert row is not None
            watched.looks += 1
            watched.most_running = max(watched.most_running, row["running"])
            watched.most_pending = max(watched.most_pending, row["pending"])
            watched.most_new = max(watched.most_new, row["new_ones"])
            await asyncio.sleep(LOOK_SECONDS)


async def collect_forecasts(stack: StackHarness, found: list[Forecast]) -> None:
    """Reads the forecasts of the pending runs, again and again, until cancelled."""
    while True:
        asked_at = time.time()
        with suppress(client_errors.Unreachable):
            shown = await stack.client.queue.GetQueue(queue_pb2.GetQueueRequest(page_size=500))
            found += [forecast for run in shown.pending if (forecast := _forecast(run, asked_at))]
        await asyncio.sleep(ASK_EVERY_SECONDS)


def _forecast(run: run_pb2.Run, asked_at: float) -> Forecast | None:
    """None without a forecast, and for a run that had a slot before: its next one is not noted."""
    wait = run.wait
    if run.HasField("started_at") or not wait.HasField("estimated_seconds"):
        return None
    reported = (wait.estimated_seconds, wait.estimated_low_seconds, wait.estimated_high_seconds)
    return Forecast(run.run_id, asked_at, *reported)


async def until_all_end(stack: StackHarness, run_ids: Sequence[str]) -> None:
    """Ended and closed, all of them."""
    query = "SELECT count(*) FROM scheduler.runs WHERE run_id = ANY ($1::uuid[]) AND NOT is_closed"
    async with stack.database() as database:

        async def have_ended() -> bool:
            return bool(await database.fetchval(query, list(run_ids)) == 0)

        await eventually(have_ended, f"{len(run_ids)} runs have ended", LIMIT_SECONDS)


@asynccontextmanager
async def looking_on(looking: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Beside what is done within; breaks it when the looking breaks."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(looking)
        yield
        task.cancel()


@dataclass(frozen=True)
class EndedRun:
    """A run by its rows; `waited` is from the order to its first slot, None where it never had one."""

    run_id: str
    user: str
    state: str
    ordered: int
    recorded: int
    ended_at: float
    started_at: float | None
    waited: float | None

    @property
    def kind(self) -> str:
        return self.user.split()[0]


_ENDED = """
SELECT run_id::text, username AS user, state, (ordered ->> 'limit')::int AS ordered,
       (SELECT count(*) FROM results.outcomes
         WHERE run_id = runs.run_id AND status = 'scored' AND rollout = 0
           AND sample < (ordered ->> 'limit')::int) AS recorded,
       extract(epoch FROM finished_at)::float8 AS ended_at,
       extract(epoch FROM started_at)::float8 AS started_at,
       extract(epoch FROM started_at - created_at)::float8 AS waited
  FROM scheduler.runs
 WHERE username = ANY ($1::text[])
 ORDER BY created_at
"""


async def ended_runs(stack: StackHarness, crowd: Crowd) -> list[EndedRun]:
    async with stack.database() as database:
        return [EndedRun(**row) for row in await database.fetch(_ENDED, crowd.users)]


def assert_none_is_lost(runs: Sequence[EndedRun], tally: Tally) -> None:
    """Every run that was taken ended; what completed has each answer, recorded once by its key."""
    assert sorted(run.run_id for run in runs) == sorted(tally.accepted)
    assert {run.state for run in runs} <= {"completed", "cancelled"}
    cancelled = {run.run_id for run in runs if run.state == "cancelled"}
    assert cancelled <= tally.unwanted
    assert len(cancelled) >= tally.cancels
    short = [run for run in runs if run.state == "completed" and run.recorded != run.ordered]
    assert short == []
