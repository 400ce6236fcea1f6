"""The latest counts of a run: only forwards, with its pace, waking who waits."""

import asyncio

from services.scheduler.runs.run_counts import ProgressNews, RunCounts, TaskCounts
from services.scheduler.shards.progress_board import ProgressBoard


def news(recorded: int, *, epoch: int = 1, shards: dict[int, int] | None = None) -> ProgressNews:
    return ProgressNews("run", RunCounts(epoch, (TaskCounts("task", recorded),)), shards or {})


def board_of_the_leader() -> ProgressBoard:
    board = ProgressBoard()
    board.keep_shards("run")
    return board


def recorded(board: ProgressBoard, epoch: int = 1) -> int | None:
    counts = board.counts("run", epoch)
    return counts.recorded if counts else None


def test_replayed_report_changes_no_count() -> None:
    board = board_of_the_leader()
    board.record(news(10, shards={0: 10}), 0)
    board.record(news(4, shards={0: 4}), 1)
    assert recorded(board) == 10
    assert board.take_shard_counts("run") == {0: 10}


def test_reports_that_cross_lose_no_shard() -> None:
    board = board_of_the_leader()
    board.record(news(128, shards={2: 64}), 0)
    board.record(news(64, shards={1: 64}), 0.1)
    assert recorded(board) == 128
    assert board.take_shard_counts("run") == {1: 64, 2: 64}


def test_later_epoch_begins_with_fewer() -> None:
    board = board_of_the_leader()
    board.record(news(10, shards={0: 10}), 0)
    board.record(news(4, epoch=2), 1)
    assert recorded(board, epoch=1) is None
    assert recorded(board, epoch=2) == 4
    assert board.take_shard_counts("run") == {}


def test_counts_of_shards_are_kept_until_taken() -> None:
    board = board_of_the_leader()
    board.record(news(10, shards={0: 10}), 0)
    board.record(news(15, shards={1: 5}), 1)
    assert board.take_shard_counts("run") == {0: 10, 1: 5}
    assert board.take_shard_counts("run") == {}


def test_counts_of_shards_are_kept_only_where_the_run_is_driven() -> None:
    board = ProgressBoard()
    board.record(news(10, shards={0: 10}), 0)
    assert board.take_shard_counts("run") == {}
    board.keep_shards("run")
    board.record(news(20, shards={1: 10}), 0)
    board.drop_shards("run")
    board.record(news(30, shards={2: 10}), 0)
    assert board.take_shard_counts("run") == {}
    assert recorded(board) == 30


def test_pace_is_that_of_the_last_ten_seconds() -> None:
    board = ProgressBoard()
    for second in range(21):
        board.record(news(100 * min(second, 10)), second)
    assert board.samples_per_second("run", 20) == 0
    assert board.samples_per_second("other", 20) is None


def test_pace_falls_while_nothing_comes() -> None:
    board = ProgressBoard()
    board.record(news(0), 0)
    board.record(news(100), 1)
    assert board.samples_per_second("run", 2) == 50
    assert board.samples_per_second("run", 4) == 25


async def test_change_between_look_and_wait_is_not_missed() -> None:
    board = ProgressBoard()
    version = board.version("run")
    board.touch("run", 0)
    async with asyncio.timeout(1):
        await board.wait_beyond("run", version, 60, 0)


async def test_who_waits_is_woken_by_a_report() -> None:
    board = ProgressBoard()
    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        group.create_task(board.wait_beyond("run", board.version("run"), 60, 0))
        await asyncio.sleep(0)
        board.record(news(1), 0)


def test_idle_runs_are_forgotten() -> None:
    board = ProgressBoard()
    board.record(news(1), 0)
    board.forget_idle(601)
    assert recorded(board) is None
