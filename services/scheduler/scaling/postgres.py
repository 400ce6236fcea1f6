"""Demands of pools in Postgres."""

import json
from collections.abc import Sequence
from datetime import datetime

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.scaling.pool_demand import PoolDemand
from services.scheduler.scaling.ports import StoredDemands


class PostgresDemands:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def demands(self) -> StoredDemands:
        rows = await self._session.fetch("list_pool_demands")
        demands = {row["pool"]: _demand_from_row(row) for row in rows}
        return StoredDemands(demands, max((row["computed_at"] for row in rows), default=None))

    async def keep(self, token: FencingToken, demands: Sequence[PoolDemand], now: datetime) -> None:
        rows = [
            {
                "pool": demand.pool,
                "workers": demand.workers,
                "backlog_samples": json.dumps(dict(demand.backlog_samples)),
                "speeds": json.dumps(dict(demand.speeds)),
                "load_seconds": demand.load_seconds,
                "computed_at": now,
            }
            for demand in demands
        ]

        async def keep(transaction: PostgresTransaction) -> None:
            await transaction.executemany("store_pool_demand", rows)

        await run_as_leader(self._session, token, keep)


def _demand_from_row(row: asyncpg.Record) -> PoolDemand:
    return PoolDemand(
        pool=row["pool"],
        workers=row["workers"],
        backlog_samples=json.loads(row["backlog_samples"]),
        speeds=json.loads(row["speeds"]),
        load_seconds=row["load_seconds"],
    )
