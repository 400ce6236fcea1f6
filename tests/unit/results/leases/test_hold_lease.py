"""A lease is renewed while its work goes on, and the work ends where another replica took it."""

import asyncio

import pytest

from services.common.errors import DependencyUnavailable
from services.results.leases import hold_lease as module
from services.results.leases.hold_lease import LeaseLost, hold_lease
from services.results.leases.lease import Work, WorkKind
from tests.fakes.eventually import eventually
from tests.fakes.results.memory_leases import MemoryLeases

WORK = Work(WorkKind.CLOSE, "run", 1)


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASE_SECONDS", 0.003)


async def test_a_renewal_tells_how_far_the_work_is() -> None:
    leases, shares = MemoryLeases(), iter((0.25, 0.5))
    await leases.acquire(WORK, 60)
    async with hold_lease(leases, WORK, lambda: next(shares, 0.75)):
        await eventually(lambda: leases.held[WORK] == 0.75, "the share is stored")
    assert await leases.share(WORK) == 0.75


async def test_work_ends_where_its_lease_is_taken_away() -> None:
    leases = MemoryLeases()
    await leases.acquire(WORK, 60)

    async def withdrawn() -> None:
        async with hold_lease(leases, WORK):
            await leases.withdraw(WORK)
            await asyncio.Event().wait()

    async with asyncio.timeout(10):
        with pytest.raises(LeaseLost):
            await withdrawn()
    again = await leases.acquire(WORK, 60)
    assert again is not None
    assert again.is_withdrawn


class AwayLeases(MemoryLeases):
    calls = 0

    async def renew(self, work: Work, share: float, seconds: float) -> bool:
        self.calls += 1
        if self.calls < 3:
            raise DependencyUnavailable(dependency="Postgres")
        return await super().renew(work, share, seconds)


async def test_a_lease_is_held_while_postgres_is_away() -> None:
    leases = AwayLeases()
    await leases.acquire(WORK, 60)
    async with hold_lease(leases, WORK, lambda: 0.5):
        await eventually(lambda: leases.held[WORK] == 0.5, "it is renewed when Postgres is back")
    assert leases.calls >= 3


@pytest.mark.parametrize("error", [TimeoutError, asyncio.CancelledError, ValueError])
async def test_errors_of_the_work_are_its_own(error: type[BaseException]) -> None:
    leases = MemoryLeases()
    await leases.acquire(WORK, 60)
    with pytest.raises(error):
        async with hold_lease(leases, WORK):
            raise error
    assert WORK in leases.held
