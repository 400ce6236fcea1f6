"""A worker takes more as long as there is room, the most urgent first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from services.worker.consumer.prefetch import Intake, IntakeLimits


@dataclass
class HandClock:
    """Moves only when told."""

    at: float = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, tz=UTC)

    def monotonic(self) -> float:
        return self.at


def intake_of(asked: int, *, ahead: int = 0, held: int = 1000, clock: HandClock | None = None) -> Intake:
    return Intake(IntakeLimits(asked, ahead, held), ranks=3, clock=clock or HandClock())


async def may_take(intake: Intake, rank: int = 0) -> bool:
    """Whether the turn comes at once."""
    turn = asyncio.ensure_future(intake.turn(rank))
    await asyncio.wait((turn,), timeout=0.01)
    turn.cancel()
    return turn.done() and not turn.cancelled() and turn.result()


async def test_there_is_room_until_enough_samples_wait() -> None:
    intake = intake_of(64)
    intake.take(63, 63)
    assert await may_take(intake)
    intake.take(1, 1)
    assert not await may_take(intake)
    intake.finish(1)
    assert await may_take(intake)


async def test_answers_that_cannot_be_sent_close_the_intake() -> None:
    intake = intake_of(64, held=128)
    intake.take(128, 128)
    intake.finish(128)
    assert not await may_take(intake)
    intake.release(64)
    assert await may_take(intake)


async def test_what_is_less_urgent_waits_while_more_urgent_work_flows() -> None:
    intake = intake_of(64)
    intake.report(0, None, came=True)
    assert not await may_take(intake, rank=1)
    assert await may_take(intake, rank=0)
    intake.report(0, None, came=False)
    assert await may_take(intake, rank=2)


async def test_a_turn_that_waits_comes_when_room_is_made() -> None:
    intake = intake_of(1)
    intake.take(1, 1)
    turns = [asyncio.create_task(intake.turn(rank)) for rank in range(3)]
    await asyncio.wait(turns, timeout=0.01)
    intake.finish(1)
    assert await asyncio.wait_for(asyncio.gather(*turns), 5) == [True, True, True]


async def test_a_closed_intake_turns_everybody_away_until_it_is_opened() -> None:
    intake = intake_of(1)
    intake.take(1, 1)
    turn = asyncio.create_task(intake.turn(0))
    await asyncio.wait((turn,), timeout=0.01)
    intake.close()
    assert await asyncio.wait_for(turn, 5) is False
    intake.open()
    intake.finish(1)
    assert await may_take(intake)


async def test_it_is_empty_once_everything_is_released() -> None:
    intake = intake_of(8)
    intake.take(2, 2)
    emptied = asyncio.create_task(intake.until_empty())
    intake.finish(2)
    assert not intake.is_idle()
    intake.release(2)
    await asyncio.wait_for(emptied, 5)
    assert intake.is_idle()


async def test_behind_a_slow_engine_nothing_waits_that_another_worker_could_ask() -> None:
    clock = HandClock()
    intake = intake_of(64, ahead=32, clock=clock)
    intake.take(64, 64)
    clock.at += 60
    intake.finish(4)
    intake.take(4, 64)
    assert not await may_take(intake)


async def test_a_fast_engine_gets_ahead_what_it_gets_through_in_a_quarter_of_a_second() -> None:
    clock = HandClock()
    intake = intake_of(64, ahead=32, clock=clock)
    intake.take(164, 164)
    clock.at += 1
    intake.finish(100)
    assert await may_take(intake)
    intake.take(24, 24)
    assert await may_take(intake)
    intake.take(1, 1)
    assert not await may_take(intake)


async def test_what_is_left_unasked_is_no_sign_of_a_fast_engine() -> None:
    clock = HandClock()
    intake = intake_of(64, ahead=32, clock=clock)
    intake.take(564, 564)
    clock.at += 1
    intake.leave(500)
    assert not await may_take(intake)


async def test_no_more_is_ahead_than_its_limit() -> None:
    clock = HandClock()
    intake = intake_of(64, ahead=32, clock=clock)
    intake.take(10_096, 64)
    clock.at += 1
    intake.finish(10_000)
    assert not await may_take(intake)


def test_a_small_engine_gets_little_ahead_and_a_large_one_a_shard_at_most() -> None:
    assert IntakeLimits.for_concurrency(1).ahead == 1
    assert IntakeLimits.for_concurrency(256).ahead == 64
