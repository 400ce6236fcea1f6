"""Joins the parts of archives."""

from collections.abc import Sequence

from services.common.clock import Clock
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession
from services.results.archives.archive_run import ArchiveRun
from services.results.archives.parquet_parts import ParquetParts
from services.results.archives.postgres import PostgresArchives
from services.results.archives.postgres_reads import ArchivedReads
from services.results.runs.ports import RunRecordStore


def make_archives(
    session: PostgresSession,
    records: RunRecordStore,
    clock: Clock,
    object_store: str,
    readers: Sequence[PostgresSession],
) -> ArchiveRun:
    """Lets the session and others that read closed runs read archives. `object_store` "": none is made.

    What is recorded is of open runs: the session of recorders needs no look at archives.
    """
    files = ParquetParts(objects=ObstoreObjects(url=object_store) if object_store else None)
    reads = ArchivedReads(archived=files)
    for reader in (session, *readers):
        reader.make_call = reads.call
    archives = PostgresArchives(session=session)
    return ArchiveRun(records=records, archives=archives, files=files, clock=clock)
