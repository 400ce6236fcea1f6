"""The queue as it is shown: who comes first and why, when, and what one look costs."""

from datetime import timedelta

import pytest

from services.scheduler.errors import InvalidParameter
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.limits.change_limits import ChangeLimits
from services.scheduler.runs.limits.queue_limits import LimitChanges
from services.scheduler.runs.orders.run_order import Priority
from services.scheduler.runs.reads.run_list import RunFilter
from tests.fakes.scheduler_stand import SchedulerStand, toy_order


async def submitted(stand: SchedulerStand, user: str = "local", **order: object) -> Run:
    stand.clock.seconds += 0.001
    return await stand.submit(toy_order(**order), user)


async def wait_of(stand: SchedulerStand, run: Run) -> RunWait:
    return (await stand.forecasts.waits([run]))[run.run_id]


async def crowded(most: int = 1) -> SchedulerStand:
    """As many runs of ann as may run."""
    stand = SchedulerStand()
    await stand.runs.limits.change(LimitChanges(max_running=most))
    for _ in range(most):
        await submitted(stand, "ann")
    await stand.admit()
    return stand


async def test_the_next_run_is_held_by_the_places() -> None:
    stand = await crowded()
    run = await submitted(stand)
    assert (await wait_of(stand, run)).blocked_by == "1 of at most 1 runs are running"


async def test_a_run_behind_others_says_who_they_are() -> None:
    stand = await crowded()
    later = await submitted(stand, "ann")
    last = await submitted(stand, "ann")
    for _ in range(2):
        await submitted(stand, "bob")
    await submitted(stand, "carl", priority=Priority.HIGH)
    assert (await wait_of(stand, last)).blocked_by == (
        "1 of at most 1 runs are running; before it: "
        "3 of other users by fair share (ann has 1 running and 1 waiting before it), 1 whose turn is earlier"
    )
    low = await submitted(stand, "dora", priority=Priority.LOW)
    told = (await wait_of(stand, low)).blocked_by
    assert told == "1 of at most 1 runs are running; before it: 5 more urgent"
    assert (await wait_of(stand, later)).position < (await wait_of(stand, last)).position


async def test_a_run_whose_turn_has_come_says_that_it_starts() -> None:
    stand = SchedulerStand()
    wait = await wait_of(stand, await submitted(stand))
    assert wait.blocked_by == "0 of at most 3 runs are running: a slot is free, it starts in a moment"
    assert wait.estimate is not None
    assert wait.estimate.high == 0


async def test_a_run_whose_pool_has_no_worker_says_so_too() -> None:
    stand = await crowded()
    run = await submitted(stand, "bob")
    assert (await wait_of(stand, run)).estimate is not None
    stand.registry.live = []
    wait = await wait_of(stand, run)
    assert wait.blocked_by.endswith("; no worker of pool remote is live")
    assert wait.estimate is None
    assert await stand.forecasts.seconds_to_end(run) is None


async def test_a_place_that_has_to_be_given_away_is_counted_on() -> None:
    stand = await crowded(most=2)
    stand.clock.seconds += 20
    first, second = [await submitted(stand, "bob") for _ in range(2)]
    stay = stand.runs.limits.now.min_run_time.total_seconds()
    told = (await wait_of(stand, first)).estimate
    assert told is not None
    assert told.seconds == pytest.approx(stay - 20, abs=0.1)
    # Then each user has one place, and nobody has to go.
    assert (await wait_of(stand, second)).estimate is None


async def test_limits_that_were_lowered_are_waited_for() -> None:
    stand = await crowded(most=2)
    await stand.runs.limits.change(LimitChanges(max_running=1))
    wait = await wait_of(stand, await submitted(stand, "ann"))
    assert wait.blocked_by == "2 of at most 1 runs are running"
    assert wait.estimate is None


async def test_many_who_look_within_a_moment_cost_one_look() -> None:
    stand = await crowded()
    forecasts = stand.forecasting(max_age_seconds=0.5)
    run = await submitted(stand)
    new = await submitted(stand)
    await stand.cancelling.cancel(new.run_id)
    stand.queue_store.looks = 0
    for _ in range(100):
        assert await forecasts.waits([run])
    assert stand.queue_store.looks == 1
    assert not await forecasts.waits([new])
    stand.clock.seconds += 0.5
    await stand.queue_of(forecasts).show(10)
    assert stand.queue_store.looks == 3


async def test_what_is_shown_is_of_one_moment() -> None:
    """A run that is paused between two looks is not shown as running and as paused."""
    stand = await crowded()
    queue = stand.queue_of(stand.forecasting(max_age_seconds=0.5))
    [running] = (await queue.show(10)).running
    await stand.pausing.pause(running.run.run_id)
    shown = await queue.show(10)
    assert [each.run.run_id for each in shown.running] == [running.run.run_id]
    assert shown.paused == []


async def test_a_page_of_waiting_runs_costs_two_looks_however_far_behind_they_are() -> None:
    stand = await crowded()
    await stand.runs.limits.change(LimitChanges(max_pending_per_user=1000))
    for _ in range(560):
        await submitted(stand, "bob", priority=Priority.LOW)
    stand.queue_store.looks = 0
    page = await stand.showing.page(RunFilter(), 300, None)
    assert stand.queue_store.looks == 2
    # The newest first: those behind the 500 that are looked at know their place alone.
    waits = [each.wait for each in page.snapshots]
    assert [wait.position for wait in waits if wait] == list(range(560, 260, -1))
    assert waits[0]
    assert waits[0].blocked_by == "1 of at most 1 runs are running; before it: 559 in all"


async def test_a_page_is_cut_and_the_total_told() -> None:
    stand = await crowded()
    for _ in range(4):
        await submitted(stand)
    paused = await submitted(stand, "bob")
    await stand.pausing.pause(paused.run_id)
    shown = await stand.queue.show(2)
    assert [each.wait.position for each in shown.waiting if each.wait] == [1, 2]
    assert (len(shown.waiting), shown.waiting_total) == (2, 4)
    assert [each.run.run_id for each in shown.paused] == [paused.run_id]
    assert [(each.user, each.running, each.pending) for each in shown.users] == [
        ("ann", 1, 0),
        ("local", 0, 4),
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (LimitChanges(max_running=0), "max_running_runs is 0, but must be at least 1"),
        (LimitChanges(max_pending_per_user=-1), "max_pending_runs_per_user is -1"),
        (LimitChanges(max_requests_per_minute=0), "max_requests_per_minute is 0"),
        (LimitChanges(run_time_limit=timedelta()), "run_time_limit is 0 s, but must be above 0"),
        (LimitChanges(min_run_time=timedelta(seconds=-1)), "min_run_time is -1 s, but must be at least 0"),
        (LimitChanges(priorities={"": Priority.LOW}), "user is '', but must be 1 to 128"),
        (LimitChanges(priorities={"a\0": Priority.LOW}), "1 to 128 printable characters"),
    ],
)
async def test_a_limit_that_makes_no_sense_is_refused(changes: LimitChanges, said: str) -> None:
    stand = SchedulerStand()
    before = stand.runs.limits.now
    with pytest.raises(InvalidParameter, match=said) as raised:
        await ChangeLimits(stand.runs.limits).change(changes)
    assert str(raised.value.facts["field"]).startswith("limits.")
    assert stand.runs.limits.now == before
