"""A run is watched: its budget once, and that it brings nothing once until it goes on."""

from dataclasses import replace

from proctor.values.run import RunCounts, TaskCounts
from proctor.values.usage import NO_TOKENS, ModelPrice, TokenUsage
from services.scheduler.dispatch.run_watch import RunWatch
from services.scheduler.leadership.leader_election import FencingToken
from tests.fakes.scheduler.stores import new_run
from tests.fakes.scheduler.surroundings import NotedEvents, SetClock

TOKEN = FencingToken(1)


def counts(recorded: int, tokens: int = 0) -> RunCounts:
    usage = TokenUsage(prompt_tokens=tokens)
    return RunCounts(1, (TaskCounts("say", recorded, 0),), {}, {}, usage)


async def test_budget_is_told_at_four_fifths_and_once() -> None:
    events, clock = NotedEvents(), SetClock()
    run = replace(new_run(max_cost=1.0), price=ModelPrice(1.0, 0.0))
    watch = RunWatch(events, TOKEN, clock)
    await watch.look(run, counts(1, 799_999), NO_TOKENS)
    assert events.events == {}
    for _ in range(2):
        await watch.look(run, counts(2, 700_000), TokenUsage(prompt_tokens=100_000))
    [event] = events.events.values()
    assert "has cost 0.8 USD of at most 1 USD" in event.text
    # Of the next leader it is the same event.
    await RunWatch(events, TOKEN, clock).look(run, counts(3, 900_000), NO_TOKENS)
    assert len(events.events) == 1


async def test_run_without_a_limit_has_no_budget() -> None:
    events = NotedEvents()
    await RunWatch(events, TOKEN, SetClock()).look(new_run(), counts(1, 10**9), NO_TOKENS)
    assert events.events == {}


async def test_run_that_brings_nothing_for_half_an_hour_is_told_once_each_time() -> None:
    events, clock = NotedEvents(), SetClock()
    run, watch = new_run(), RunWatch(events, TOKEN, clock)
    for recorded, minutes, told in (
        (0, 0, 0),
        (0, 29, 0),
        (1, 2, 0),
        (1, 29, 0),
        (1, 2, 1),
        (1, 99, 1),
        (2, 0, 1),
        (2, 31, 2),
    ):
        clock.seconds += 60 * minutes
        await watch.look(run, counts(recorded) if recorded else None, NO_TOKENS)
        assert len(events.events) == told, (recorded, minutes)
