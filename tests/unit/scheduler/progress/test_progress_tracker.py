"""The latest counts of a run: only forwards, with its speed, waking those who wait."""

import asyncio

from proctor.values.run import RunCounts, TaskCounts
from services.scheduler.progress.progress_tracker import ProgressReport, ProgressTracker


def report(recorded: int, *, epoch: int = 1, shards: dict[int, int] | None = None) -> ProgressReport:
    return ProgressReport("run", RunCounts(epoch, (TaskCounts("task", recorded),)), shards or {})


def leaderboard_of_the_leader() -> ProgressTracker:
    tracker = ProgressTracker()
    tracker.keep_shards("run")
    return tracker


def recorded(tracker: ProgressTracker, epoch: int = 1) -> int | None:
    counts = tracker.counts("run", epoch)
    return counts.recorded if counts else None


def test_replayed_report_changes_no_count() -> None:
    tracker = leaderboard_of_the_leader()
    tracker.record(report(10, shards={0: 10}), 0)
    tracker.record(report(4, shards={0: 4}), 1)
    assert recorded(tracker) == 10
    assert tracker.take_shard_counts("run") == {0: 10}


def test_reports_that_cross_lose_no_shard() -> None:
    tracker = leaderboard_of_the_leader()
    tracker.record(report(128, shards={2: 64}), 0)
    tracker.record(report(64, shards={1: 64}), 0.1)
    assert recorded(tracker) == 128
    assert tracker.take_shard_counts("run") == {1: 64, 2: 64}


def test_later_epoch_begins_with_fewer() -> None:
    tracker = leaderboard_of_the_leader()
    tracker.record(report(10, shards={0: 10}), 0)
    tracker.record(report(4, epoch=2), 1)
    assert recorded(tracker, epoch=1) is None
    assert recorded(tracker, epoch=2) == 4
    assert tracker.take_shard_counts("run") == {}


def test_counts_of_shards_are_kept_until_taken() -> None:
    tracker = leaderboard_of_the_leader()
    tracker.record(report(10, shards={0: 10}), 0)
    tracker.record(report(15, shards={1: 5}), 1)
    assert tracker.take_shard_counts("run") == {0: 10, 1: 5}
    assert tracker.take_shard_counts("run") == {}


def test_counts_of_shards_are_kept_only_where_the_run_is_driven() -> None:
    tracker = ProgressTracker()
    tracker.record(report(10, shards={0: 10}), 0)
    assert tracker.take_shard_counts("run") == {}
    tracker.keep_shards("run")
    tracker.record(report(20, shards={1: 10}), 0)
    tracker.drop_shards("run")
    tracker.record(report(30, shards={2: 10}), 0)
    assert tracker.take_shard_counts("run") == {}
    assert recorded(tracker) == 30


def test_speed_is_that_of_the_last_ten_seconds() -> None:
    tracker = ProgressTracker()
    for second in range(21):
        tracker.record(report(100 * min(second, 10)), second)
    assert tracker.samples_per_second("run", 20) == 0
    assert tracker.samples_per_second("other", 20) is None


def test_speed_falls_while_nothing_comes() -> None:
    tracker = ProgressTracker()
    tracker.record(report(0), 0)
    tracker.record(report(100), 1)
    assert tracker.samples_per_second("run", 2) == 50
    assert tracker.samples_per_second("run", 4) == 25


async def test_change_between_look_and_wait_is_not_missed() -> None:
    tracker = ProgressTracker()
    version = tracker.version("run")
    tracker.touch("run", 0)
    async with asyncio.timeout(1):
        await tracker.wait_beyond("run", version, 60, 0)


async def test_who_waits_is_woken_by_a_report() -> None:
    tracker = ProgressTracker()
    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        group.create_task(tracker.wait_beyond("run", tracker.version("run"), 60, 0))
        await asyncio.sleep(0)
        tracker.record(report(1), 0)


def test_idle_runs_are_forgotten() -> None:
    tracker = ProgressTracker()
    tracker.record(report(1), 0)
    tracker.forget_idle(601)
    assert recorded(tracker) is None
