"""Marks on answers, in Postgres: those of one call are set together or not at all."""

from collections.abc import Mapping, Sequence

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.answers.golden_answer import GoldenAnswer
from services.results.answers.postgres_answers import key_columns
from services.results.errors import FailureNotGolden, NoSuchAnswer
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.errors import RecordNotFound


class PostgresGoldenAnswers:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def positions(self, set_id: str, row_ids: Sequence[str]) -> Mapping[str, int]:
        rows = await self._session.fetch("find_rows", set_id, row_ids)
        return {row["row_id"]: row["position"] for row in rows}

    async def mark(self, run_id: str, keys: Sequence[OutcomeKey], user: str) -> int:
        """An answer stays what it is, so what was looked at holds until it is marked."""

        async def once() -> int:
            async with self._session.transaction() as transaction:
                await _check(transaction, run_id, keys, are_marked=True)
                await transaction.execute("add_golden", run_id, *key_columns(keys), user)
                return await _count(transaction, run_id)

        try:
            return await self._session.repeat(once)
        except asyncpg.ForeignKeyViolationError as error:
            raise RecordNotFound(run_id=run_id) from error

    async def unmark(self, run_id: str, keys: Sequence[OutcomeKey]) -> int:
        async def once() -> int:
            async with self._session.transaction() as transaction:
                await _check(transaction, run_id, keys, are_marked=False)
                await transaction.execute("drop_golden", run_id, *key_columns(keys))
                return await _count(transaction, run_id)

        return await self._session.repeat(once)

    async def page(self, run_id: str, after: OutcomeKey, most: int) -> list[GoldenAnswer]:
        rows = await self._session.fetch("list_golden_answers", run_id, *after, most)
        return [
            GoldenAnswer((row["sample"], row["rollout"]), row["marked_at"], row["digest"], row["name"])
            for row in rows
        ]


async def _check(
    transaction: PostgresTransaction, run_id: str, keys: Sequence[OutcomeKey], *, are_marked: bool
) -> None:
    """A mark may be taken off whatever was marked."""
    row = await transaction.fetchrow("find_unmarkable", run_id, *key_columns(keys))
    if row is None or (row["is_failure"] and not are_marked):
        return
    error = FailureNotGolden if row["is_failure"] else NoSuchAnswer
    raise error(run_id=run_id, sample=row["sample"], rollout=row["rollout"])


async def _count(transaction: PostgresTransaction, run_id: str) -> int:
    row = await transaction.fetchrow("count_golden", run_id)
    return row["golden"] if row else 0
