"""Leases in Postgres."""

from collections.abc import Mapping

import asyncpg

from services.common.postgres import PostgresSession
from services.results.leases.lease import Lease, Work


class PostgresLeases:
    """`holder`: the UUID of this replica."""

    def __init__(self, session: PostgresSession, holder: str) -> None:
        self._session = session
        self._holder = holder

    async def acquire(self, work: Work, seconds: float) -> Lease | None:
        try:
            row = await self._session.fetchrow(
                "acquire_lease", **_key(work), holder=self._holder, seconds=seconds
            )
        except asyncpg.ForeignKeyViolationError:
            return None
        return None if row is None else Lease(work, row["starts"], row["is_withdrawn"])

    async def share(self, work: Work) -> float:
        share: float | None = await self._session.fetchval("read_lease_share", **_key(work))
        # Without a lease the work was done just now: the next look finds what it made.
        return 1.0 if share is None else share

    async def renew(self, work: Work, share: float, seconds: float) -> bool:
        renewed = await self._session.fetchrow(
            "renew_lease", **_key(work), holder=self._holder, share=share, seconds=seconds
        )
        return renewed is not None

    async def withdraw(self, work: Work) -> None:
        await self._session.execute("withdraw_lease", **_key(work), holder=self._holder)

    async def release(self, work: Work, *, counts: bool) -> None:
        await self._session.execute("release_lease", **_key(work), holder=self._holder, counts=counts)

    async def reset(self, work: Work) -> None:
        await self._session.execute("reset_lease", **_key(work))

    async def delete(self, work: Work) -> None:
        await self._session.execute("delete_lease", **_key(work), holder=self._holder)


def _key(work: Work) -> Mapping[str, object]:
    return {"work": work.kind, "run_id": work.run_id, "epoch": work.epoch}
