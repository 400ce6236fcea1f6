"""Rollouts that wait for a provider give their sandbox and place to others; in the end their run fails."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, cast

import pytest

from proctor.values.outcome import Failure, FailureClass, Outcome
from proctor.values.priority import Priority
from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import TarLimits
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.execute_shard import SamplePlace
from services.worker.consumer.prefetch import Prefetch, PrefetchLimits
from services.worker.engines.errors import ModelRefused, RateLimited
from services.worker.execution.request_wait import RequestWait
from services.worker.execution.run_states import RefusedRuns
from services.worker.rollouts.errors import BegunAnew
from services.worker.rollouts.rests.rest import Rest
from services.worker.rollouts.rests.restable_sandbox import RestableSandbox
from services.worker.rollouts.rests.wait_for_provider import RestTimes, WaitForProvider
from tests.fakes.virtual_time import LoopClock, in_virtual_time
from tests.fakes.worker.held_message import a_shard

SHARD = a_shard(1)
ANSWERED = SHARD.outcome(0, Failure(FailureClass.REFUSED, "stands for an answer"))
LIMITED = RateLimited("The provider answered 429.")
TIMES = RestTimes(rest_seconds=60, most_seconds=1800)


@dataclass
class Folders:
    """A sandbox that has only folders."""

    folders: dict[str, bytes] = field(default_factory=dict)
    is_open: bool = True
    is_refusing: bool = False

    async def put(self, path: str, tar: bytes) -> None:
        self.folders[path] = tar

    async def get(self, path: str, into: BinaryIO, _: TarLimits) -> None:
        if self.is_refusing:
            raise FilesRefused(path=path, problem="too many files")
        into.write(self.folders[path])

    async def get_root(self, into: BinaryIO, *_: object) -> None:
        into.write(self.folders.get("/", b""))

    async def close(self) -> None:
        self.is_open = False


class Worker:
    """Two places, and the sandboxes of the rollouts that had them."""

    def __init__(self) -> None:
        clock = LoopClock()
        self.concurrency = ConcurrencyLimit(2)
        self.prefetch = Prefetch(PrefetchLimits.for_concurrency(2, 2), clock)
        self.slots = asyncio.Semaphore(2)
        self.kept_open = asyncio.Semaphore(2)
        self.opened: list[Folders] = []
        self.is_refusing = False
        self.refused = RefusedRuns(clock)
        self.waits = WaitForProvider(self.refused, clock, TIMES)

    async def open(self) -> Sandbox:
        self.opened.append(Folders(is_refusing=self.is_refusing))
        return cast("Sandbox", self.opened[-1])

    async def rollout(
        self,
        execute: Callable[[RequestWait], Coroutine[None, None, Outcome | None]],
        *,
        needs_processes: bool = False,
        has_answer: bool = True,
    ) -> Outcome | None:
        """One request of a rollout, which has a file before it."""
        await self.concurrency.acquire()
        place = SamplePlace(self.concurrency, self.prefetch, Priority.NORMAL)
        self.prefetch.add(1, 1)
        self.prefetch.take_slots(Priority.NORMAL, 1)
        rest = Rest(place, self.kept_open)
        rest.needs_processes, rest.has_answer = needs_processes, has_answer
        async with AsyncExitStack() as ends:
            ends.callback(self.prefetch.free_slots, Priority.NORMAL, 1)
            ends.callback(self.prefetch.add, -1, -1)
            ends.callback(place.end)
            await ends.enter_async_context(rest.in_slot(self.slots))
            rest.sandbox = RestableSandbox(self.open, ["/app"], TarLimits())
            await rest.sandbox.open()
            ends.push_async_callback(rest.sandbox.close)
            await rest.sandbox.put("/app", b"what it made")
            return await self.waits.execute(SHARD, rest, execute)

    def assert_idle(self) -> None:
        counts = (self.concurrency.in_use, self.prefetch.unfinished, self.prefetch.rollouts_in_flight)
        assert (counts, self.slots._value, self.kept_open._value) == ((0, 0, 0), 2, 2)
        assert not any(sandbox.is_open for sandbox in self.opened)


async def limited_for(tries: Iterable[int], wait: RequestWait) -> Outcome:
    """As `ExecuteSample`: a 429 every five seconds, as often as `tries` has items."""
    for _ in tries:
        await wait.until_turn()
        wait.failure = LIMITED
        await asyncio.sleep(5)
    await wait.until_turn()
    return ANSWERED


@in_virtual_time
async def test_a_rollout_that_waits_long_rests_and_goes_on_in_a_new_sandbox_with_its_folder() -> None:
    worker = Worker()
    waiting = asyncio.create_task(worker.rollout(partial(limited_for, range(100))))
    await asyncio.sleep(TIMES.rest_seconds - 5)
    assert (worker.opened[0].is_open, worker.concurrency.in_use) == (True, 1)
    await asyncio.sleep(10)
    assert (worker.opened[0].is_open, worker.concurrency.in_use) == (False, 0)
    assert (worker.prefetch.unfinished, worker.prefetch.rollouts_in_flight, worker.slots._value) == (0, 0, 2)
    assert await waiting is ANSWERED
    assert [sandbox.folders for sandbox in worker.opened] == [{"/app": b"what it made"}] * 2
    worker.assert_idle()


@in_virtual_time
async def test_others_have_the_place_of_a_rollout_that_rests() -> None:
    worker = Worker()
    waiting = [asyncio.create_task(worker.rollout(partial(limited_for, itertools.count()))) for _ in range(2)]
    async with asyncio.timeout(2 * TIMES.rest_seconds):
        assert await worker.rollout(partial(limited_for, ())) is ANSWERED
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    assert all(each.cancelled() for each in waiting)
    worker.assert_idle()


@in_virtual_time
async def test_of_the_rollouts_of_a_run_that_rest_one_asks() -> None:
    worker, tries = Worker(), [0] * 6

    async def counting(index: int, wait: RequestWait) -> Outcome:
        while True:
            await wait.until_turn()
            tries[index] += 1
            await asyncio.sleep(5)

    waiting = [asyncio.create_task(worker.rollout(partial(counting, index))) for index in range(6)]
    await asyncio.sleep(10 * TIMES.rest_seconds)
    before = list(tries)
    await asyncio.sleep(100)
    assert sum(after > once for once, after in zip(before, tries, strict=True)) == 1
    # An answer to any rollout of the run is a sign for all.
    worker.refused.on_answer(SHARD)
    before = list(tries)
    await asyncio.sleep(10)
    assert all(after > once for once, after in zip(before, tries, strict=True))
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    worker.assert_idle()


@in_virtual_time
async def test_a_run_without_any_answer_fails_after_a_time_with_the_last_failure() -> None:
    worker = Worker()
    began = asyncio.get_running_loop().time()
    with pytest.raises(ModelRefused, match=r"No answer for 1,800 s.*answered 429"):
        await worker.rollout(partial(limited_for, itertools.count()))
    assert TIMES.most_seconds <= asyncio.get_running_loop().time() - began < TIMES.most_seconds + 10
    assert "answered 429" in (worker.refused.reason(SHARD) or "")
    worker.assert_idle()


@in_virtual_time
async def test_a_run_with_answers_waits_on() -> None:
    worker = Worker()
    waiting = asyncio.create_task(worker.rollout(partial(limited_for, range(1000))))
    for _ in range(4):
        await asyncio.sleep(TIMES.most_seconds / 2)
        worker.refused.on_answer(SHARD)
        assert not waiting.done()
    assert await waiting is ANSWERED
    worker.assert_idle()


@in_virtual_time
async def test_a_provider_that_works_on_an_answer_is_waited_for_in_the_sandbox() -> None:
    worker = Worker()

    async def thinking(wait: RequestWait) -> Outcome:
        wait.is_sent = True
        await asyncio.sleep(2 * TIMES.most_seconds)
        wait.is_sent = False
        return ANSWERED

    assert await worker.rollout(thinking) is ANSWERED
    assert len(worker.opened) == 1
    worker.assert_idle()


@in_virtual_time
async def test_a_rollout_whose_files_cannot_be_kept_stays_where_it_is() -> None:
    worker = Worker()
    worker.is_refusing = True
    assert await worker.rollout(partial(limited_for, range(100))) is ANSWERED
    assert len(worker.opened) == 1
    worker.assert_idle()


@in_virtual_time
async def test_a_rollout_whose_processes_matter_rests_in_its_sandbox() -> None:
    worker = Worker()
    waiting = asyncio.create_task(worker.rollout(partial(limited_for, range(100)), needs_processes=True))
    await asyncio.sleep(TIMES.rest_seconds + 5)
    assert (worker.opened[0].is_open, worker.concurrency.in_use, worker.slots._value) == (True, 0, 2)
    assert await waiting is ANSWERED
    assert len(worker.opened) == 1
    worker.assert_idle()


@in_virtual_time
async def test_beyond_those_that_a_worker_keeps_open_they_begin_anew() -> None:
    worker = Worker()
    waiting = [
        asyncio.create_task(worker.rollout(partial(limited_for, itertools.count()), needs_processes=True))
        for _ in range(2)
    ]
    await asyncio.sleep(TIMES.rest_seconds + 5)
    with pytest.raises(BegunAnew):
        await worker.rollout(partial(limited_for, itertools.count()), needs_processes=True)
    assert (worker.concurrency.in_use, worker.slots._value) == (0, 2)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    worker.assert_idle()


@in_virtual_time
async def test_without_an_answer_nothing_is_lost_by_beginning_anew() -> None:
    worker = Worker()
    with pytest.raises(BegunAnew):
        await worker.rollout(partial(limited_for, range(100)), needs_processes=True, has_answer=False)
    worker.assert_idle()
