"""A process leads while it holds the lock, stops when it loses it, and stands for election again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost, lead_when_elected

LIMIT_SECONDS = 10.0


class Term:
    def __init__(self, token: FencingToken) -> None:
        self.fencing_token = token
        self.ended = asyncio.Event()

    async def lost(self) -> None:
        await self.ended.wait()


class Election:
    """Elects at once, with a new number each time."""

    def __init__(self) -> None:
        self.terms: list[Term] = []

    @asynccontextmanager
    async def term(self) -> AsyncIterator[Term]:
        elected = Term(FencingToken(len(self.terms) + 1))
        self.terms.append(elected)
        yield elected


async def test_a_leader_that_loses_the_lock_stops_and_leads_again_under_a_new_number() -> None:
    election = Election()
    led: list[int] = []
    stopped: list[int] = []
    again = asyncio.Event()

    async def lead(token: FencingToken) -> None:
        led.append(token)
        if token == 2:
            again.set()
        try:
            election.terms[0].ended.set()
            await asyncio.Event().wait()
        finally:
            stopped.append(token)

    leading = asyncio.create_task(lead_when_elected(election, lead))
    async with asyncio.timeout(LIMIT_SECONDS):
        await again.wait()
        assert (led, stopped) == ([1, 2], [1])
        leading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leading
    assert stopped == [1, 2]


async def test_a_leader_that_is_fenced_off_stands_for_election_again() -> None:
    election = Election()
    again = asyncio.Event()

    async def lead(token: FencingToken) -> None:
        if token == 1:
            raise LeadershipLost
        again.set()
        await asyncio.Event().wait()

    leading = asyncio.create_task(lead_when_elected(election, lead))
    async with asyncio.timeout(LIMIT_SECONDS):
        await again.wait()
        leading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leading
    assert [term.fencing_token for term in election.terms] == [1, 2]


async def test_any_other_failure_of_a_leader_ends_the_process() -> None:
    election = Election()

    async def lead(token: FencingToken) -> None:
        raise RuntimeError(f"term {token}")

    async with asyncio.timeout(LIMIT_SECONDS):
        with pytest.raises(ExceptionGroup) as raised:
            await lead_when_elected(election, lead)
    assert [str(each) for each in raised.value.exceptions] == ["term 1"]
    assert len(election.terms) == 1
