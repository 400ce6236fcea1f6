"""How fast a worker asks one provider under one key."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from services.worker.rate_limits.backoff import Backoff
from services.worker.rate_limits.limiter import Allowed, Granted, Pace, Paces, pace_name
from tests.fakes.eventually import eventually
from tests.fakes.virtual_time import LoopClock, in_virtual_time

BACKOFF = Backoff(first_seconds=0.02)
KEY = "sk-secret-of-the-test"


@pytest.fixture
def pace() -> Pace:
    return Pace("p", LoopClock(), BACKOFF)


async def seconds_of(pace: Pace, turns: int) -> float:
    started = LoopClock().monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(turns):
            group.create_task(pace.turn())
    return LoopClock().monotonic() - started


@in_virtual_time
async def test_nothing_waits_while_no_limit_is_known(pace: Pace) -> None:
    turn = pace.turn()
    with pytest.raises(StopIteration):  # it ended without waiting once
        turn.send(None)


@in_virtual_time
async def test_requests_go_out_at_the_granted_rate(pace: Pace) -> None:
    pace.grant(Granted(requests=200.0))
    assert 0.35 < await seconds_of(pace, 100) < 0.9


@in_virtual_time
async def test_a_slow_rate_lets_one_at_a_time_through(pace: Pace) -> None:
    pace.grant(Granted(requests=4.0))
    assert 0.6 < await seconds_of(pace, 3) < 1.5


@in_virtual_time
async def test_requests_wait_for_their_tokens(pace: Pace) -> None:
    pace.took(50)
    pace.grant(Granted(tokens=5000.0))
    assert 0.3 < await seconds_of(pace, 50) < 0.9


@in_virtual_time
async def test_a_rate_that_rises_meanwhile_is_heeded(pace: Pace) -> None:
    pace.grant(Granted(requests=1000.0))
    await seconds_of(pace, 1)
    pace.grant(Granted(requests=0.01))
    waiting = asyncio.create_task(pace.turn())
    await eventually(lambda: pace.waiting == 1, "it waits", 2)
    pace.grant(Granted(requests=1000.0))
    await asyncio.wait_for(waiting, 2)


@in_virtual_time
async def test_one_refusal_holds_all_requests_until_the_provider_wants_to_be_asked(pace: Pace) -> None:
    pace.refused(0.3)
    assert await seconds_of(pace, 10) >= 0.3
    assert pace.told_to_resume_at is not None
    assert pace.told_to_resume_at <= LoopClock().now()


@in_virtual_time
async def test_refusals_that_were_under_way_together_hold_once(pace: Pace) -> None:
    for _ in range(50):
        pace.refused(None)
    assert pace.limited == 50
    assert await seconds_of(pace, 1) < 0.1


@in_virtual_time
async def test_a_word_to_all_workers_holds_this_one_too(pace: Pace) -> None:
    pace.grant(Granted(requests=1000.0, resume_at=LoopClock().now() + timedelta(seconds=0.3)))
    assert 0.28 < await seconds_of(pace, 1) < 0.8


@in_virtual_time
async def test_what_waits_can_be_given_up_and_the_others_go_on(pace: Pace) -> None:
    pace.refused(30.0)
    waiting = [asyncio.create_task(pace.turn()) for _ in range(5)]
    await eventually(lambda: pace.waiting == 5, "all of them wait", 2)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert pace.waiting == 0
    pace._resume_at = 0.0
    assert await seconds_of(pace, 3) < 0.5


def test_what_headers_told_stands_where_they_say_nothing(pace: Pace) -> None:
    pace.hear(Allowed(requests=10.0, tokens=500.0))
    pace.hear(Allowed(requests=20.0))
    assert pace.allowed == Allowed(requests=20.0, tokens=500.0)


def test_a_name_tells_no_key_and_is_the_same_for_all_who_have_it() -> None:
    name = pace_name("openai", "https://example.org/v1/", KEY)
    assert name == pace_name("openai", "https://example.org/v1", KEY)
    assert KEY not in name
    others = (("openai", "https://example.org/v1", None), ("grok", "https://example.org/v1", KEY),
              ("openai", "https://example.com/v1", KEY))  # fmt: skip
    assert len({name, *(pace_name(*other) for other in others)}) == 4


def test_each_server_that_an_order_names_has_a_pace_of_its_own() -> None:
    paces = Paces(LoopClock(), BACKOFF, "openai", "https://example.org/v1", KEY)
    other = paces.of("http://127.0.0.1:8000/v1/")
    assert paces.of("") is paces.of("https://example.org/v1") is paces.own
    assert paces.of("http://127.0.0.1:8000/v1") is other is paces.named(other.name)
    assert other.name == pace_name("openai", "http://127.0.0.1:8000/v1", None)
    for number in range(1000):
        paces.of(f"http://127.0.0.1:{number}")
    assert len(list(paces)) < 300
