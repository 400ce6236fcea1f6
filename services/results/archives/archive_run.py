"""Moves the outcomes of a closed run to the object store and back, in bounded steps that go on after a kill.

Each step can be repeated: a part is written and read back before it is recorded, rows are deleted only once
every part is, and they come back before a part is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.clock import Clock
from services.common.errors import ObjectStoreUnavailable
from services.common.structured_logs import get_logger
from services.results.archives.archive import ArchivePart, ArchivePhase, manifest_key, part_key
from services.results.archives.errors import NotYetArchivable
from services.results.archives.ports import ArchiveFiles
from services.results.archives.postgres import PostgresArchives
from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey
from services.results.runs.errors import RecordNotFound
from services.results.runs.ports import RunRecordStore

log = get_logger()

# Of a call: the leader calls again, and other work comes between.
STEP_SECONDS = 2.0
# The longest query of a reader (`read_timeout_seconds`), with some time between its look and its begin.
SETTLED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ArchiveRun:
    """Raises `RecordNotFound`, `NoArchive` and `ObjectStoreUnavailable`."""

    records: RunRecordStore
    archives: PostgresArchives
    files: ArchiveFiles
    clock: Clock
    settled_seconds: float = SETTLED_SECONDS

    async def size_bytes(self, run_id: str) -> int:
        """Nearly what the outcomes of a run take in Postgres."""
        return await self.archives.size_bytes(run_id)

    async def archive(self, run_id: str) -> bool:
        """Does some of the work; True once all of it is done. Raises `NotYetArchivable`."""
        self.files.check()
        phase = await self.archives.phase(run_id)
        if phase is None and not await self.archives.begin(run_id):
            raise NotYetArchivable(run_id=run_id)
        if phase is None or phase is ArchivePhase.WRITING:
            return await self._write(run_id) and await self._close(run_id)
        if phase is ArchivePhase.CLEARING:
            return await self._clear(run_id)
        if phase is ArchivePhase.ARCHIVED:
            return True
        # A restoration under way comes first.
        await self.restore(run_id)
        return False

    async def restore(self, run_id: str) -> bool:
        """Does some of the work; True once all of it is done, and for a run without an archive."""
        phase = await self.archives.phase(run_id)
        if phase is None:
            return True
        self.files.check()
        if phase is ArchivePhase.WRITING:
            await self.archives.advance(run_id, phase, ArchivePhase.REMOVING)
        elif phase in (ArchivePhase.CLEARING, ArchivePhase.ARCHIVED):
            await self.archives.advance(run_id, phase, ArchivePhase.RESTORING)
        elif phase is ArchivePhase.RESTORING:
            await self._return(run_id)
        else:
            return await self._remove(run_id)
        return False

    async def _write(self, run_id: str) -> bool:
        """Writes the next parts; True behind the last outcome."""
        until = self.clock.monotonic() + STEP_SECONDS
        parts = await self.archives.parts(run_id)
        number, after = (parts[-1].number + 1, parts[-1].last) if parts else (0, BEFORE_ALL)
        while self.clock.monotonic() < until:
            last = await self._write_part(run_id, number, after)
            if last is None:
                return True
            number, after = number + 1, last
        return False

    async def _write_part(self, run_id: str, number: int, after: OutcomeKey) -> OutcomeKey | None:
        rows = await self.archives.next_rows(run_id, after)
        if not rows:
            return None
        first, last = ((row["sample"], row["rollout"]) for row in (rows[0], rows[-1]))
        digest = await self.archives.stored_digest(run_id, first, last)
        size_bytes, file_digest = await self.files.write(run_id, number, rows)
        part = ArchivePart(
            number=number,
            first=first,
            last=last,
            outcomes=len(rows),
            size_bytes=size_bytes,
            file_digest=file_digest,
            rows_digest=digest,
        )
        # As Postgres reads them: what comes back from the store is what is stored, to the last digit.
        if await self.archives.given_digest(await self.files.read_part(run_id, part)) != digest:
            raise unlike(run_id, number)
        if not await self.archives.add_part(run_id, part):
            await self._check_known(run_id)
        return last

    async def _check_known(self, run_id: str) -> None:
        """Of a run that was deleted meanwhile no file is left. Raises `RecordNotFound` then."""
        try:
            await self.archives.phase(run_id)
        except RecordNotFound:
            await self.files.delete(await self.files.keys(run_id))
            raise

    async def _close(self, run_id: str) -> bool:
        """Writes the manifest. From then on readers read the object store."""
        if missing := await self.archives.unarchived(run_id):
            raise ObjectStoreUnavailable(problem=f"the archive of run {run_id} lacks {missing} outcomes")
        parts = await self.archives.parts(run_id)
        # Of a process that was killed before it recorded what it had written.
        await self.files.delete(await self._checked(run_id, parts))
        record = await self.records.get(run_id)
        await self.files.write_manifest(run_id, record.epoch, parts)
        if not await self.archives.advance(run_id, ArchivePhase.WRITING, ArchivePhase.CLEARING):
            await self._check_known(run_id)
        return False

    async def _checked(self, run_id: str, parts: Sequence[ArchivePart]) -> Sequence[str]:
        """Returns files that are in no part.

        Raises `ObjectStoreUnavailable` unless the parts follow each other, and their files are there.
        """
        keys, after = set(await self.files.keys(run_id)), BEFORE_ALL
        for number, part in enumerate(parts):
            key, is_next = part_key(run_id, number, part.file_digest), part.number == number
            if key not in keys or not is_next or part.first <= after:
                raise ObjectStoreUnavailable(problem=f"the archive of run {run_id} lacks part {number}")
            keys.remove(key)
            after = part.last
        return sorted(keys - {manifest_key(run_id)})

    async def _clear(self, run_id: str) -> bool:
        if not await self.archives.is_settled(run_id, ArchivePhase.CLEARING, self.settled_seconds):
            return False
        # A last look, since from here on the files are all there is.
        await self._checked(run_id, await self.archives.parts(run_id))
        until = self.clock.monotonic() + STEP_SECONDS
        after: OutcomeKey | None = BEFORE_ALL
        while after is not None and self.clock.monotonic() < until:
            after = await self.archives.clear(run_id, after)
        if after is not None:
            return False
        return await self.archives.advance(run_id, ArchivePhase.CLEARING, ArchivePhase.ARCHIVED)

    async def _return(self, run_id: str) -> None:
        """Stores the next parts again."""
        until = self.clock.monotonic() + STEP_SECONDS
        for part in await self.archives.parts(run_id):
            if part.is_restored:
                continue
            if self.clock.monotonic() >= until:
                return
            # Rows that were not deleted yet need no file.
            if await self.archives.keep(run_id, part):
                continue
            rows = await self.files.read_part(run_id, part)
            if not await self.archives.restore(run_id, part, rows):
                raise unlike(run_id, part.number)
        if not await self.archives.unarchived(run_id):
            await self.archives.advance(run_id, ArchivePhase.RESTORING, ArchivePhase.REMOVING)

    async def _remove(self, run_id: str) -> bool:
        if await self.archives.is_backup_running():
            return False
        # Before the look at the phase: whoever sleeps between the two deletes nothing of the next archive.
        keys = await self.files.keys(run_id)
        if not await self.archives.is_settled(run_id, ArchivePhase.REMOVING, self.settled_seconds):
            return False
        await self.files.delete(keys)
        await self.archives.end(run_id)
        return True

    async def delete(self, run_id: str) -> bool:
        """Deletes the folder of a run that is deleted.

        False while a backup may need it, and while the store is away.
        """
        if await self.archives.is_backup_running():
            return False
        try:
            await self.files.delete(await self.files.keys(run_id))
        except ObjectStoreUnavailable as error:
            log.warning("archive not deleted", run_id=run_id, error=str(error))
            return False
        return True


def unlike(run_id: str, number: int) -> ObjectStoreUnavailable:
    """The store gave back something else than was written."""
    problem = f"part {number} of the archive of run {run_id} differs from its rows"
    return ObjectStoreUnavailable(problem=problem)
