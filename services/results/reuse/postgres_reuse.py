"""Answers are taken from run to run inside Postgres: none travels through the service."""

from collections.abc import Mapping, Sequence

from services.results.postgres_session import PostgresSession
from services.results.reuse.reuse_answers import MOST_SOURCES, Source


class PostgresReuse:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def sources(self, run_id: str, task_index: int, environment: Mapping[str, str]) -> Sequence[Source]:
        said = list(environment), list(environment.values())
        rows = await self._session.fetch("find_same_requests", run_id, task_index, *said, MOST_SOURCES)
        return [Source(row["run_id"], row["task_index"]) for row in rows]

    async def take(self, run_id: str, epoch: int, task_index: int, source: Source) -> int:
        async def once() -> int:
            async with self._session.transaction() as transaction:
                await transaction.execute("join_by_hash")
                row = await transaction.fetchrow(
                    "take_answers", run_id, epoch, task_index, source.run_id, source.task_index
                )
                return row["taken"] if row else 0

        return await self._session.repeat(once)
