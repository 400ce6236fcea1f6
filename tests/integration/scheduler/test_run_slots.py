"""Admission and preemption, in memory and in Postgres alike: order, limits, pauses."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.names.user import OTHER_USERS
from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, RunState
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.planning.ports import PlanRecord
from services.scheduler.runs.admission.run_slots import SlotChanges
from services.scheduler.runs.lifecycle.errors import PriorityNotAllowed, QueueFull
from services.scheduler.runs.lifecycle.run import CLOSING, Run, RunError, RunFinish
from tests.fakes.callers import by
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import HOUR, Stores, add, admit, empty_stores, new_run, stores_in_memory
from tests.fakes.scheduler.surroundings import START

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database(max_size=20) as pool:
        yield pool


@pytest_asyncio.fixture(params=["memory", "postgres"], loop_scope="module")
async def stores(request: pytest.FixtureRequest, pool: asyncpg.Pool) -> Stores:
    return stores_in_memory() if request.param == "memory" else await empty_stores(pool)


async def order_of(stores: Stores) -> list[RunId]:
    return [each.run.run_id for each in (await stores.queue.queue(500)).pending]


async def state_of(stores: Stores, run: Run) -> RunState:
    return (await stores.runs.get(run.run_id)).state


def by_fair_share(runs: list[Run]) -> list[RunId]:
    """Whose turn it is, where nothing runs yet and one place after the other is given."""
    taken: Counter[str] = Counter()
    left = sorted(runs, key=lambda run: (run.order.priority, run.created_at))
    order = []
    while left:
        first = min(left, key=lambda run: (run.order.priority, taken[run.user], run.created_at))
        left.remove(first)
        taken[first.user] += 1
        order.append(first.run_id)
    return order


@pytest.mark.parametrize("seed", range(3))
async def test_order_is_by_priority_then_fair_share_then_age(stores: Stores, seed: int) -> None:
    chance = random.Random(seed)
    await stores.limits.change(LimitChanges(max_pending_runs_per_user=100), by())
    runs = [
        await add(stores, new_run(age, chance.choice("aaaabbcde"), priority=chance.choice(list(Priority))))
        for age in range(40)
    ]
    order = await order_of(stores)
    assert order == by_fair_share(runs)
    assert await stores.queue.positions(order[3:6]) == {order[3]: 4, order[4]: 5, order[5]: 6}
    assert set(await admit(stores, await stores.begin_term(), 6)) == set(order[:6])


async def test_memory_and_postgres_decide_alike_whatever_happens(pool: asyncpg.Pool) -> None:
    """So what is simulated in memory holds for the queries."""
    memory, postgres = stores_in_memory(), await empty_stores(pool)
    chance = random.Random(1)
    fences = [(stores, await stores.begin_term()) for stores in (memory, postgres)]
    for stores, _ in fences:
        await stores.limits.change(LimitChanges(max_pending_runs_per_user=100, min_run_time=3 * SECOND), by())
    runs: list[Run] = []
    preempted = 0
    for step in range(60):
        now = START + step * SECOND
        runs.append(new_run(step, chance.choice("aaaabcdef"), priority=chance.choice(list(Priority))))
        paused, resumed, ended = (chance.choice(runs) for _ in range(3))
        seen = []
        for stores, token in fences:
            await add(stores, runs[-1])
            await stores.runs.pause(paused.run_id, by(now))
            await stores.runs.resume(resumed.run_id, by(now))
            await stores.runs.cancel(ended.run_id, by(now))
            for running in (await stores.queue.queue(1)).running:
                await stores.shards.mark_planned(token, running, PlanRecord((), 1))
            moves = await stores.slots.admit(token, now)
            rows = [await stores.runs.get(run.run_id) for run in runs]
            seen.append((set(moves.admitted), set(moves.preempted), await order_of(stores), rows))
        assert seen[0] == seen[1]
        preempted += len(seen[0][1])
    assert preempted > 10


async def test_preempted_run_waits_in_its_epoch_and_its_time_does_not_count(stores: Stores) -> None:
    await stores.limits.change(
        LimitChanges(max_running_runs=1, run_time_limit=HOUR, min_run_time=MINUTE), by()
    )
    token = await stores.begin_term()
    long = await add(stores, new_run(user="ann"))
    await stores.slots.admit(token, START)
    assert await stores.shards.mark_planned(token, long, PlanRecord((), 1))
    short = await add(stores, new_run(1, user="bob"))
    assert await stores.slots.admit(token, START + 59 * SECOND) == SlotChanges([], [])
    moves = await stores.slots.admit(token, START + MINUTE)
    assert (list(moves.admitted), list(moves.preempted)) == ([short.run_id], [long.run_id])
    assert list(moves.waits) == [(Priority.HIGH, 59.0)]
    waiting = await stores.runs.get(long.run_id)
    assert (waiting.state, waiting.epoch, waiting.planned_epoch) == (RunState.PENDING, 1, 1)
    assert (waiting.ran_seconds, waiting.admitted_at, waiting.deadline) == (60, None, None)
    assert not await stores.led.set_phase(token, long, "x")
    await stores.runs.cancel(short.run_id, by(START + 2 * HOUR))
    moves = await stores.slots.admit(token, START + 2 * HOUR)
    assert list(moves.waits) == [(Priority.HIGH, 2 * 3600.0 - 60.0)], "since it was preempted"
    again = await stores.runs.get(long.run_id)
    assert (again.started_at, again.admitted_at) == (START, START + 2 * HOUR)
    assert again.deadline == START + 3 * HOUR - MINUTE
    assert again.time_limit == HOUR


async def test_urgent_run_takes_the_slot_of_a_less_urgent_one_at_once(stores: Stores) -> None:
    token = await stores.begin_term()
    low, normal = [
        await add(stores, new_run(user="ann", priority=priority))
        for priority in (Priority.LOW, Priority.NORMAL)
    ]
    await admit(stores, token, 2)
    urgent = await add(stores, new_run(1, user="ann", priority=Priority.HIGH))
    assert await admit(stores, token, 2) == [urgent.run_id]
    assert await state_of(stores, low) is RunState.PENDING
    assert await state_of(stores, normal) is RunState.RUNNING


async def test_paused_run_keeps_what_it_has_and_goes_on_in_its_epoch(stores: Stores) -> None:
    run = await add(stores, new_run())
    token = await stores.begin_term()
    await stores.slots.admit(token, START)
    await stores.shards.mark_planned(token, run, PlanRecord((), 1))
    paused = await stores.runs.pause(run.run_id, by(START + MINUTE))
    assert paused is not None
    assert (paused.state, paused.ran_seconds, paused.deadline) == (RunState.PAUSED, 60, None)
    assert await stores.runs.pause(run.run_id, by(START + HOUR)) is None
    assert await stores.slots.admit(token, START + HOUR) == SlotChanges([], [])
    assert await stores.led.to_drive() == []
    assert await stores.led.open_among([run.run_id]) == [run.run_id]
    resumed = await stores.runs.resume(run.run_id, by(START + 2 * HOUR))
    assert resumed is not None
    assert (resumed.state, resumed.epoch, resumed.planned_epoch) == (RunState.PENDING, 1, 1)
    assert await stores.runs.resume(run.run_id, by(START + 2 * HOUR)) == resumed
    assert await stores.runs.resume(run.run_id, by(START + 3 * HOUR)) is None


async def test_run_that_waits_can_be_paused_and_a_paused_one_cancelled(stores: Stores) -> None:
    run = await add(stores, new_run())
    assert await stores.runs.pause(run.run_id, by(START)) is not None
    assert await order_of(stores) == []
    assert await stores.runs.cancel(run.run_id, by(START)) is not None
    assert await stores.runs.pause(run.run_id, by(START)) is None
    assert await stores.led.to_drive() == [run.run_id]


async def test_what_is_paused_counts_as_waiting_and_can_be_resumed_at_any_time(stores: Stores) -> None:
    await stores.limits.change(LimitChanges(max_pending_runs_per_user=1), by())
    run = await add(stores, new_run())
    await stores.runs.pause(run.run_id, by(START))
    with pytest.raises(QueueFull):
        await add(stores, new_run())
    assert await stores.runs.resume(run.run_id, by(START)) is not None
    assert await state_of(stores, run) is RunState.PENDING


async def test_run_that_waits_again_is_no_more_urgent_than_its_user_may_have_it_now(stores: Stores) -> None:
    retried, paused, low = [
        await add(stores, new_run(priority=priority))
        for priority in (Priority.HIGH, Priority.HIGH, Priority.LOW)
    ]
    await stores.runs.cancel(retried.run_id, by(START))
    await stores.led.mark_closed(await stores.begin_term(), retried, None)
    for run in (paused, low):
        await stores.runs.pause(run.run_id, by(START))
    await stores.limits.change(LimitChanges(highest_priorities={OTHER_USERS: Priority.NORMAL}), by())
    again = [
        await stores.runs.requeue(retried.run_id, by(START)),
        await stores.runs.resume(paused.run_id, by(START)),
        await stores.runs.resume(low.run_id, by(START)),
    ]
    wanted = [Priority.NORMAL, Priority.NORMAL, Priority.LOW]
    assert [run.order.priority for run in again if run] == wanted
    assert [(await stores.runs.get(run.run_id)).order.priority for run in (retried, paused, low)] == wanted


async def test_priority_above_what_a_user_may_have_is_refused_with_those_allowed(stores: Stores) -> None:
    await stores.limits.change(
        LimitChanges(highest_priorities={OTHER_USERS: Priority.NORMAL, "ann": Priority.HIGH}), by()
    )
    await add(stores, new_run(user="ann", priority=Priority.HIGH))
    await add(stores, new_run(user="bob", priority=Priority.NORMAL))
    with pytest.raises(PriorityNotAllowed) as refusal:
        await add(stores, new_run(user="bob", priority=Priority.HIGH))
    assert refusal.value.facts == {"user": "bob", "priority": "high", "allowed": "normal, low"}


async def test_two_schedulers_and_changes_of_the_limit_never_exceed_it(pool: asyncpg.Pool) -> None:
    """At any moment no more run than the highest limit that held since each of them was admitted."""
    stores = await empty_stores(pool)
    token = await stores.begin_term()
    await stores.limits.change(LimitChanges(max_running_runs=2, max_pending_runs_per_user=100), by())
    for age in range(40):
        await add(stores, new_run(age, user=f"user {age % 7}"))

    async def admissions() -> None:
        for _ in range(20):
            await stores.slots.admit(token, START)

    async def end_some() -> None:
        for _ in range(30):
            running = (await stores.queue.queue(1)).running
            assert len(running) <= 5
            for run in running[:1]:
                await stores.runs.cancel(run.run_id, by(START))

    async def changes() -> None:
        for most in (5, 1, 4, 2, 5, 3):
            await stores.limits.change(LimitChanges(max_running_runs=most), by())

    await asyncio.gather(*(admissions() for _ in range(8)), end_some(), changes())
    await stores.slots.admit(token, START)
    assert len((await stores.queue.queue(1)).running) in (3, 4, 5)
    for run in (await stores.queue.queue(1)).running:
        await stores.runs.cancel(run.run_id, by(START))
    await asyncio.gather(*(admissions() for _ in range(8)))
    assert len((await stores.queue.queue(1)).running) == 3


async def test_once_a_limit_is_lowered_no_run_is_admitted_by_the_old_one(pool: asyncpg.Pool) -> None:
    stores = await empty_stores(pool)
    token = await stores.begin_term()
    await stores.limits.change(LimitChanges(max_running_runs=9), by())
    for age in range(9):
        await add(stores, new_run(age))
    admitting = asyncio.gather(*(stores.slots.admit(token, START) for _ in range(5)))
    await stores.limits.change(LimitChanges(max_running_runs=1), by())
    running = len((await stores.queue.queue(1)).running)
    await admitting
    assert len((await stores.queue.queue(1)).running) == max(running, 1)


@pytest.mark.parametrize("phase", [CLOSING, "any text"])
async def test_run_that_waits_for_its_figures_has_no_slot_and_can_only_be_cancelled(
    pool: asyncpg.Pool, phase: str
) -> None:
    stores = await empty_stores(pool)
    token = await stores.begin_term()
    run, other = await add(stores, new_run()), await add(stores, new_run(1))
    await admit(stores, token, 1)
    assert await stores.led.set_phase(token, run, phase, is_closing=True)
    assert await admit(stores, token, 1) == [other.run_id]
    assert await stores.runs.pause(run.run_id, by(START)) is None
    assert (await stores.runs.get(run.run_id)).is_closing
    assert await stores.runs.cancel(run.run_id, by(START)) is not None
    assert not await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START))
    assert not (await stores.runs.get(run.run_id)).is_closing


async def test_run_keeps_its_slot_whatever_its_step_is_called(pool: asyncpg.Pool) -> None:
    stores = await empty_stores(pool)
    token = await stores.begin_term()
    run = await add(stores, new_run())
    await add(stores, new_run(1))
    await admit(stores, token, 1)
    assert await stores.led.set_phase(token, run, CLOSING)
    assert await admit(stores, token, 1) == []
    assert not (await stores.runs.get(run.run_id)).is_closing
    assert await stores.runs.pause(run.run_id, by(START)) is not None


@pytest.mark.parametrize("following", ["reopened", "completed"])
async def test_run_that_was_closing_is_not_for_ever(pool: asyncpg.Pool, following: str) -> None:
    stores = await empty_stores(pool)
    token = await stores.begin_term()
    run = await add(stores, new_run())
    await admit(stores, token, 1)
    assert await stores.led.set_phase(token, run, CLOSING, is_closing=True)
    if following == "reopened":
        assert await stores.led.set_phase(token, run, "")
    else:
        assert await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START))
    assert not (await stores.runs.get(run.run_id)).is_closing


async def test_run_is_stopped_or_closed_and_never_both(pool: asyncpg.Pool) -> None:
    """A pause and an urgent run come at the moment at which it is closed."""
    stores = await empty_stores(pool)
    await stores.limits.change(LimitChanges(max_running_runs=1, max_pending_runs_per_user=100), by())
    token = await stores.begin_term()
    won: Counter[bool] = Counter()
    for age in range(60):
        run = await add(stores, new_run(age, priority=Priority.LOW))
        assert await admit(stores, token, 1) == [run.run_id]
        urgent = await add(stores, new_run(age, priority=Priority.HIGH))
        strikes = (
            stores.runs.pause(run.run_id, by(START)),
            admit(stores, token, 1),
        )
        is_closing, paused, admitted = await asyncio.gather(
            stores.led.set_phase(token, run, CLOSING, is_closing=True), *strikes
        )
        if not is_closing:
            assert paused or urgent.run_id in admitted
        assert not (is_closing and paused)
        assert await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START)) is is_closing
        await stores.runs.cancel(run.run_id, by(START))
        await stores.runs.cancel(urgent.run_id, by(START))
        won[is_closing] += 1
    assert won[False] > 0


async def test_shares_of_users_with_nothing_in_the_queue_are_forgotten(stores: Stores) -> None:
    """A user with runs in the queue keeps the place in the order; other users are forgotten."""
    token = await stores.begin_term()
    for user in ("ann", "bob"):
        run = await add(stores, new_run(user=user))
        await stores.slots.admit(token, START + MINUTE)
        await stores.runs.cancel(run.run_id, by(START + MINUTE))
    kept = await add(stores, new_run(user="bob"))
    await stores.slots.delete_admissions(token, START + MINUTE)
    ann, carl = [await add(stores, new_run(age, user)) for age, user in ((1, "ann"), (2, "carl"))]
    assert await order_of(stores) == [carl.run_id, *sorted((ann.run_id, kept.run_id))]
    await stores.runs.cancel(ann.run_id, by(START))
    await stores.slots.delete_admissions(token, START + 2 * MINUTE)
    again = await add(stores, new_run(1, user="ann"))
    assert await order_of(stores) == [again.run_id, carl.run_id, kept.run_id]


async def test_time_of_a_retried_run_is_that_of_all_its_epochs(stores: Stores) -> None:
    run = await add(stores, new_run())
    token, counts = await stores.begin_term(), RunCounts(1)
    await admit(stores, token)
    run = await stores.runs.get(run.run_id)
    failed_at = START + 2 * HOUR
    await stores.led.finish(token, run, RunFinish(RunState.FAILED, failed_at, RunError("X", "x"), counts))
    for _ in range(2):
        again = await stores.runs.requeue(run.run_id, by(failed_at))
        assert again is not None
        assert (again.ran_seconds, again.earlier_seconds) == (0.0, 3600.0)
