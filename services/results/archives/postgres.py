"""Archives in Postgres: their phases and parts, and the outcomes that leave and come back."""

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.archives.archive import PART_BYTES, PART_OUTCOMES, ArchivePart, ArchivePhase, OutcomeRow
from services.results.outcomes.outcome import OutcomeKey
from services.results.outcomes.postgres import after_key
from services.results.runs.errors import RecordNotFound


class _Unlike(Exception):
    """Takes back what a transaction has stored."""


class PostgresArchives:
    """`part_outcomes`: how many outcomes a part has at most, and a statement deletes."""

    def __init__(self, session: PostgresSession, part_outcomes: int = PART_OUTCOMES) -> None:
        self._session = session
        self._part_outcomes = part_outcomes

    async def phase(self, run_id: str) -> ArchivePhase | None:
        """None while the outcomes are in Postgres. Raises `RecordNotFound`."""
        row = await self._session.fetchrow("read_archive_phase", run_id=run_id)
        if row is None:
            raise RecordNotFound(run_id=run_id)
        return ArchivePhase(row["archive_phase"]) if row["archive_phase"] else None

    async def size_bytes(self, run_id: str) -> int:
        """Nearly what the outcomes of a run take in Postgres, with the index. Reads 1,000 of them at most."""
        measured: int = await self._session.fetchval("measure_answers", run_id=run_id)
        return measured

    async def begin(self, run_id: str) -> bool:
        """False for a run that is not closed, is still to be compared, or has an archive already."""
        return await self._session.fetchval("begin_archive", run_id=run_id) is not None

    async def advance(self, run_id: str, before: ArchivePhase, phase: ArchivePhase) -> bool:
        """False where the archive is in another phase than `before`."""
        advanced = await self._session.fetchval("advance_archive", run_id=run_id, before=before, phase=phase)
        return advanced is not None

    async def is_settled(self, run_id: str, phase: ArchivePhase, seconds: float) -> bool:
        """Whether the archive is in this phase, which began so long ago."""
        asked = {"run_id": run_id, "phase": phase, "seconds": seconds}
        return bool(await self._session.fetchval("is_phase_settled", **asked))

    async def is_backup_running(self) -> bool:
        """Whether files of archives have to stay: the backup may have the rows of a moment before."""
        return bool(await self._session.fetchval("is_backup_running"))

    async def parts(self, run_id: str) -> list[ArchivePart]:
        rows = await self._session.fetch("list_archive_parts", run_id=run_id)
        return [part_from_row(row) for row in rows]

    async def next_rows(self, run_id: str, after: OutcomeKey) -> list[asyncpg.Record]:
        """The rows of the next part: none behind the last outcome."""
        return await self._session.fetch(
            "list_outcomes_to_archive",
            run_id=run_id,
            **after_key(after),
            limit=self._part_outcomes,
            max_bytes=PART_BYTES,
        )

    async def stored_digest(self, run_id: str, first: OutcomeKey, last: OutcomeKey) -> bytes:
        """The digest of the rows between two keys, both included."""
        return await self._digest("digest_stored_outcomes", run_id=run_id, **_range(first, last))

    async def given_digest(self, rows: Sequence[OutcomeRow]) -> bytes:
        """The same digest of rows that are not stored."""
        return await self._digest("digest_given_outcomes", outcomes=rows)

    async def add_part(self, run_id: str, part: ArchivePart) -> bool:
        """False for one that is stored already, and where no archive of the run is being written."""
        added = await self._session.fetchval(
            "add_archive_part",
            run_id=run_id,
            part=part.number,
            **_range(part.first, part.last),
            outcomes=part.outcomes,
            size_bytes=part.size_bytes,
            file_digest=part.file_digest,
            rows_digest=part.rows_digest,
        )
        return added is not None

    async def unarchived(self, run_id: str) -> int:
        """How many outcomes are stored and in no part; negative where parts have more than is stored."""
        count: int = await self._session.fetchval("count_unarchived", run_id=run_id)
        return count

    async def clear(self, run_id: str, after: OutcomeKey) -> OutcomeKey | None:
        """Deletes the next rows of an archived run, and returns the last of them; None if there are none."""
        row = await self._session.fetchrow(
            "clear_outcomes", run_id=run_id, **after_key(after), limit=self._part_outcomes
        )
        return None if row is None else (row["sample"], row["rollout"])

    async def restore(self, run_id: str, part: ArchivePart, rows: Sequence[OutcomeRow]) -> bool:
        """Stores the rows of a part again. False, and nothing is stored, where they are not as they were."""

        async def restore(transaction: PostgresTransaction) -> bool:
            await transaction.execute("restore_outcomes", run_id=run_id, outcomes=rows)
            if not await _mark_restored(transaction, run_id, part):
                raise _Unlike
            return True

        try:
            return await self._session.run(restore)
        except _Unlike:
            return False

    async def keep(self, run_id: str, part: ArchivePart) -> bool:
        """Takes a part for restored whose rows are all stored still; False if they are not."""
        return await self._session.run(lambda transaction: _mark_restored(transaction, run_id, part))

    async def end(self, run_id: str) -> None:
        """Forgets the archive of a run that is restored."""

        async def end(transaction: PostgresTransaction) -> None:
            await transaction.execute("delete_archive_parts", run_id=run_id)
            await transaction.execute("end_archive", run_id=run_id)

        await self._session.run(end)

    async def _digest(self, query: str, **values: object) -> bytes:
        async def digest(transaction: PostgresTransaction) -> bytes:
            await transaction.execute("write_rows_alike")
            found: bytes = await transaction.fetchval(query, **values)
            return found

        return await self._session.run(digest)


async def _mark_restored(transaction: PostgresTransaction, run_id: str, part: ArchivePart) -> bool:
    """False where the stored rows are not as they were."""
    await transaction.execute("write_rows_alike")
    between = _range(part.first, part.last)
    stored = await transaction.fetchval("digest_stored_outcomes", run_id=run_id, **between)
    if stored != part.rows_digest:
        return False
    await transaction.execute("set_part_restored", run_id=run_id, part=part.number)
    return True


def _range(first: OutcomeKey, last: OutcomeKey) -> Mapping[str, Any]:
    return {
        "first_sample": first[0],
        "first_rollout": first[1],
        "last_sample": last[0],
        "last_rollout": last[1],
    }


def part_from_row(row: asyncpg.Record) -> ArchivePart:
    return ArchivePart(
        number=row["part"],
        first=(row["first_sample"], row["first_rollout"]),
        last=(row["last_sample"], row["last_rollout"]),
        outcomes=row["outcomes"],
        size_bytes=row["size_bytes"],
        file_digest=row["file_digest"],
        rows_digest=row["rows_digest"],
        is_restored=row["is_restored"],
    )
