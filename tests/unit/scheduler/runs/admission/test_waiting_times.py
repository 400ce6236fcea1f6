"""Fifty users with skewed loads on three slots, played through: how long does whom wait?"""

import random
import sys
from dataclasses import dataclass, field, replace
from datetime import timedelta
from statistics import median, quantiles

from proctor.values.run import RunId, RunState
from proctor.values.scoring import ScoringMethod
from services.scheduler.runs.lifecycle.run import Run, RunFinish
from services.scheduler.runs.orders.run_order import RunOrder
from tests.fakes.scheduler.memory.limits import InMemoryLimits
from tests.fakes.scheduler.memory.runs import InMemoryRuns
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits

MIN_RUN_TIME = 60.0
SLOTS = 3
HEAVY_USERS, RUNS_OF_A_HEAVY_USER, LONG_SECONDS = 5, 10, 1200.0
LIGHT_USERS = 45
# What a run loses each time it gets a slot: its driver looks for what is missing before it sends.
START_SECONDS = 2.0


@dataclass
class Job:
    """`position` is its slot in the queue when it was submitted."""

    user: str
    arrives: float
    work: float
    left: float = field(init=False)
    position: int = 0
    waited: float | None = None
    ended: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.work

    @property
    def delay(self) -> float:
        """What it took beyond its own work."""
        return self.ended - self.arrives - self.work


def loads(seed: int) -> list[Job]:
    """A few users order many long runs at once; most order one short run within the next hour."""
    chance = random.Random(seed)
    heavy = [
        Job(f"heavy {user}", 0.0, LONG_SECONDS)
        for user in range(HEAVY_USERS)
        for _ in range(RUNS_OF_A_HEAVY_USER)
    ]
    light = [
        Job(f"light {user}", float(chance.randint(1, 3600)), float(chance.randint(20, 50)))
        for user in range(LIGHT_USERS)
    ]
    return sorted(heavy + light, key=lambda job: job.arrives)


class Queue:
    """The scheduler's own admission, on a clock that jumps from one event to the next."""

    def __init__(self, min_run_time: timedelta, look_again: float = MIN_RUN_TIME) -> None:
        limits = queue_limits(
            max_running_runs=SLOTS, min_run_time=min_run_time, run_time_limit=timedelta(days=1)
        )
        self.runs = InMemoryRuns(limits=InMemoryLimits(limits))
        self.fencing_token = self.runs.begin_term()
        self.look_again = look_again
        self.moves = 0
        self.now = -1.0
        self.jobs: dict[RunId, Job] = {}
        # When each run that has a slot will be done, if it keeps it.
        self.done_at: dict[RunId, float] = {}
        self.placed_at: dict[RunId, float] = {}

    async def play(self, jobs: list[Job]) -> list[Job]:
        arriving = list(jobs)
        while arriving or self.done_at:
            events = [*self.done_at.values(), *(at + self.look_again for at in self.placed_at.values())]
            events += [arriving[0].arrives] if arriving else []
            self.now = min(at for at in events if at > self.now)
            while arriving and arriving[0].arrives <= self.now:
                await self._submit(arriving.pop(0))
            for run_id in [run_id for run_id, at in self.done_at.items() if at <= self.now]:
                await self._end(run_id)
            await self._admit()
        return jobs

    async def _submit(self, job: Job) -> None:
        run_id = RunId(f"{len(self.jobs):08}")
        time = START + timedelta(seconds=self.now)
        run = Run(run_id, RunOrder("s", "m"), job.user, "p", ScoringMethod.GENERATE, time)
        await self.runs.add(replace(run, planned_epoch=1), "")
        self.jobs[run_id] = job
        job.position = [run.run_id for run in self.runs.queue_order()].index(run_id) + 1

    async def _end(self, run_id: RunId) -> None:
        finish = RunFinish(RunState.COMPLETED, START + timedelta(seconds=self.now))
        assert await self.runs.finish(self.fencing_token, await self.runs.get(run_id), finish)
        self.jobs[run_id].ended = self.now
        del self.done_at[run_id], self.placed_at[run_id]

    async def _admit(self) -> None:
        moves = await self.runs.admit(self.fencing_token, START + timedelta(seconds=self.now))
        self.moves += len(moves.preempted)
        assert self.moves < 1000, "runs take slots from each other and get nowhere"
        for run_id in moves.preempted:
            self.jobs[run_id].left = self.done_at.pop(run_id) - self.now
            del self.placed_at[run_id]
        for run_id in moves.admitted:
            job = self.jobs[run_id]
            job.waited = self.now - job.arrives if job.waited is None else job.waited
            self.done_at[run_id] = round(self.now + job.left + START_SECONDS, 3)
            self.placed_at[run_id] = self.now
        assert await self.runs.count_running() <= SLOTS


async def waits(min_run_time: timedelta, seed: int = 7) -> list[Job]:
    return await Queue(min_run_time).play(loads(seed))


def row(title: str, seconds: list[float]) -> str:
    p95 = quantiles(seconds, n=20)[-1]
    return f"{title:46} {median(seconds):8.0f} {p95:8.0f} {max(seconds):8.0f}"


def table(jobs: list[Job], title: str) -> list[str]:
    light = [job for job in jobs if job.user.startswith("light")]
    heavy = [job for job in jobs if job.user.startswith("heavy")]
    return [
        row(f"{title}, light: until first slot", [job.waited or 0.0 for job in light]),
        row(f"{title}, light: beyond own work", [job.delay for job in light]),
        row(f"{title}, heavy: beyond own work", [job.delay for job in heavy]),
    ]


async def test_short_run_of_a_light_user_waits_for_a_few_runs_and_not_for_long_runs() -> None:
    without = await waits(timedelta.max)
    giving_way = await waits(timedelta(seconds=MIN_RUN_TIME))
    head = f"\n{'seconds':46} {'median':>8} {'p95':>8} {'longest':>8}\n"
    rows = [*table(without, "nobody gives way"), *table(giving_way, "runs give way")]
    sys.stdout.write(head + "\n".join(rows) + "\n")
    light = [job for job in giving_way if job.user.startswith("light")]
    for job in light:
        # Before it come those who were before it, and once more those who had the slots then.
        rounds = -(-(job.position + SLOTS) // SLOTS)
        assert job.waited is not None
        assert job.waited <= rounds * MIN_RUN_TIME, job
    assert median(job.delay for job in light) <= 2 * MIN_RUN_TIME
    starved = [job for job in without if job.user.startswith("light")]
    assert median(job.delay for job in starved) > 20 * MIN_RUN_TIME
    # What it costs: the long ones end later by the slots they gave away and the starts they did again.
    last = max(job.ended for job in giving_way)
    assert last <= 1.1 * max(job.ended for job in without)


async def test_runs_get_on_however_short_the_minimum_run_time_is() -> None:
    """At every look two users take the one slot from each other: each stay has to be worth its start."""
    queue = Queue(timedelta(), look_again=0.05)
    queue.runs.limits.now = replace(queue.runs.limits.now, max_running_runs=1)
    jobs = await queue.play([Job("a", 0.0, 20.0), Job("b", 0.0, 20.0), Job("c", 0.0, 20.0)])
    assert max(job.ended for job in jobs) <= 60 / (1 - START_SECONDS / 5) + 20
