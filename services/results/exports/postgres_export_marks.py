"""Marks of exported files in Postgres: small rows that any replica can go on from."""

import asyncpg

from services.common.postgres import PostgresSession
from services.results.exports.marked_file import FileMark, MarkedFile


class PostgresExportMarks:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def end(self, file: MarkedFile) -> FileMark | None:
        row = await self._session.fetchrow("read_export_end", file.run_id, file.epoch, file.tag)
        return None if row is None else _mark(row, is_end=True)

    async def last(self, file: MarkedFile, up_to_byte: int | None) -> FileMark:
        row = await self._session.fetchrow(
            "read_last_export_mark", file.run_id, file.epoch, file.tag, up_to_byte
        )
        return FileMark() if row is None else _mark(row)

    async def add(self, file: MarkedFile, mark: FileMark) -> None:
        await self._session.fetchrow(
            "add_export_mark", file.run_id, file.epoch, file.tag, mark.first_byte, *mark.after, mark.is_end
        )


def _mark(row: asyncpg.Record, *, is_end: bool = False) -> FileMark:
    return FileMark(row["first_byte"], (row["sample"], row["rollout"]), is_end)
