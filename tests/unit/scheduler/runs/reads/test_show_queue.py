"""The queue as it is shown: who comes first and why, when, and what one look costs."""

from datetime import timedelta

import pytest

from proctor.values.priority import Priority
from services.common.errors import InvalidParameter
from services.scheduler.limits.change_limits import ChangeLimits
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.run_list import RunFilter
from tests.fakes.callers import OPERATOR, by
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order


async def submitted(harness: SchedulerHarness, user: str = "local", **order: object) -> Run:
    harness.clock.seconds += 0.001
    return await harness.submit(toy_order(**order), user)


async def wait_of(harness: SchedulerHarness, run: Run) -> RunWait:
    return (await harness.forecasts.waits([run]))[run.run_id]


async def crowded(limit: int = 1) -> SchedulerHarness:
    """As many runs of ann as may run."""
    harness = SchedulerHarness()
    await harness.runs.limits.change(LimitChanges(max_running_runs=limit), by())
    for _ in range(limit):
        await submitted(harness, "ann")
    await harness.admit()
    return harness


async def test_the_next_run_is_held_by_the_slots() -> None:
    harness = await crowded()
    run = await submitted(harness)
    assert (await wait_of(harness, run)).blocked_by == "The only slot is busy"


async def test_a_run_behind_others_says_who_they_are() -> None:
    harness = await crowded()
    later = await submitted(harness, "ann")
    last = await submitted(harness, "ann")
    for _ in range(2):
        await submitted(harness, "bob")
    await submitted(harness, "carl", priority=Priority.HIGH)
    assert (await wait_of(harness, last)).blocked_by == (
        "The only slot is busy; 4 runs ahead of it: "
        "3 of other users by fair share (ann has 1 running and 1 waiting before it)"
    )
    low = await submitted(harness, "dora", priority=Priority.LOW)
    reported = (await wait_of(harness, low)).blocked_by
    assert reported == "The only slot is busy; 5 runs ahead of it: 5 more urgent"
    assert (await wait_of(harness, later)).position < (await wait_of(harness, last)).position


async def test_a_run_that_is_next_says_that_it_starts() -> None:
    harness = SchedulerHarness()
    wait = await wait_of(harness, await submitted(harness))
    assert wait.blocked_by == "A slot is free: it starts in a moment"
    assert wait.estimate is not None
    assert wait.estimate.high == 0


async def test_a_run_whose_pool_has_no_worker_says_so_too() -> None:
    harness = await crowded()
    run = await submitted(harness, "bob")
    assert (await wait_of(harness, run)).estimate is not None
    harness.registry.live = []
    wait = await wait_of(harness, run)
    assert wait.blocked_by.endswith("; no worker of pool remote is live")
    assert wait.estimate is None
    assert (await harness.forecasts.forecast([run])).time_to_end(run) is None


async def test_a_slot_that_has_to_be_given_away_is_counted_on() -> None:
    harness = await crowded(limit=2)
    harness.clock.seconds += 20
    first, second = [await submitted(harness, "bob") for _ in range(2)]
    min_run_seconds = harness.runs.limits.now.min_run_time.total_seconds()
    reported = (await wait_of(harness, first)).estimate
    assert reported is not None
    assert reported.seconds == pytest.approx(min_run_seconds - 20, abs=0.1)
    # Then each user has one slot, and no run is preempted.
    assert (await wait_of(harness, second)).estimate is None


async def test_limits_that_were_lowered_are_waited_for() -> None:
    harness = await crowded(limit=2)
    await harness.runs.limits.change(LimitChanges(max_running_runs=1), by())
    wait = await wait_of(harness, await submitted(harness, "ann"))
    assert wait.blocked_by == "2 runs are running, and the limit is 1 now"
    assert wait.estimate is None


async def test_many_who_look_within_a_moment_cost_one_look() -> None:
    harness = await crowded()
    forecasts = harness.forecasting(max_age_seconds=0.5)
    run = await submitted(harness)
    new = await submitted(harness)
    await harness.changing.cancel(new.run_id, OPERATOR)
    harness.queue_store.looks = 0
    for _ in range(100):
        assert await forecasts.waits([run])
    assert harness.queue_store.looks == 1
    assert not await forecasts.waits([new])
    harness.clock.seconds += 0.5
    await harness.listing_by(forecasts).show_queue(10, OPERATOR)
    assert harness.queue_store.looks == 3


async def test_what_is_shown_is_of_one_moment() -> None:
    """A run that is paused between two looks is not shown as running and as paused."""
    harness = await crowded()
    listing = harness.listing_by(harness.forecasting(max_age_seconds=0.5))
    [running] = (await listing.show_queue(10, OPERATOR)).running
    await harness.changing.pause(running.run.run_id, OPERATOR)
    shown = await listing.show_queue(10, OPERATOR)
    assert [each.run.run_id for each in shown.running] == [running.run.run_id]
    assert shown.paused == []


async def test_a_page_of_waiting_runs_costs_two_looks_however_far_behind_they_are() -> None:
    harness = await crowded()
    await harness.runs.limits.change(LimitChanges(max_pending_runs_per_user=1000), by())
    for _ in range(560):
        await submitted(harness, "bob", priority=Priority.LOW)
    harness.queue_store.looks = 0
    page = await harness.listing.list_page(RunFilter(), 300, None)
    assert harness.queue_store.looks == 2
    # The newest first: those behind the 500 that are looked at know their place alone.
    waits = [each.wait for each in page.snapshots]
    assert [wait.position for wait in waits if wait] == list(range(560, 260, -1))
    assert waits[0]
    assert waits[0].blocked_by == "The only slot is busy; 559 runs ahead of it"


async def test_a_page_is_cut_and_the_total_reported() -> None:
    harness = await crowded()
    for _ in range(4):
        await submitted(harness)
    paused = await submitted(harness, "bob")
    await harness.changing.pause(paused.run_id, OPERATOR)
    shown = await harness.listing.show_queue(2, OPERATOR)
    assert [each.wait.position for each in shown.pending if each.wait] == [1, 2]
    assert (len(shown.pending), shown.pending_total) == (2, 4)
    assert [each.run.run_id for each in shown.paused] == [paused.run_id]
    assert [(each.user, each.running, each.pending) for each in shown.users] == [
        ("ann", 1, 0),
        ("local", 0, 4),
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (LimitChanges(max_running_runs=0), "max_running_runs is 0, but must be at least 1"),
        (LimitChanges(max_pending_runs_per_user=-1), "max_pending_runs_per_user is -1"),
        (LimitChanges(max_requests_per_minute=0), "max_requests_per_minute is 0"),
        (LimitChanges(run_time_limit=timedelta()), "run_time_limit is 0 s, but must be above 0"),
        (LimitChanges(min_run_time=timedelta(seconds=-1)), "min_run_time is -1 s, but must be at least 0"),
        (LimitChanges(highest_priorities={"": Priority.LOW}), "user is '', but must be 1 to 128"),
        (LimitChanges(highest_priorities={"a\0": Priority.LOW}), "1 to 128 printable characters"),
    ],
)
async def test_a_limit_that_makes_no_sense_is_refused(changes: LimitChanges, said: str) -> None:
    harness = SchedulerHarness()
    before = harness.runs.limits.now
    with pytest.raises(InvalidParameter, match=said) as raised:
        await ChangeLimits(harness.runs.limits).change(changes, by())
    assert str(raised.value.facts["field"]).startswith("limits.")
    assert harness.runs.limits.now == before
