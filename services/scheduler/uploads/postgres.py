"""Data sets and files in Postgres, and the contents that they share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid5

import asyncpg

from proctor.values.names.project import declared_or_none
from proctor.values.plain import MAX_COUNTED
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.uploads.dataset import (
    Dataset,
    DatasetContent,
    DatasetCursor,
    DatasetFormat,
    DatasetId,
    DatasetPage,
    NamedContent,
    RowFacts,
)
from services.scheduler.uploads.errors import DatasetNotFound, FileNotFound
from services.scheduler.uploads.faults import faults_from_json, faults_to_json
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.stored_file import (
    FileFaults,
    FileId,
    FileList,
    FilePage,
    FilePurpose,
    StoredFile,
)

# Where a list begins, from its newest or its oldest entry.
_AFTER_ALL = (datetime(9999, 1, 1, tzinfo=UTC), "")
_BEFORE_ALL = (datetime(1, 1, 1, tzinfo=UTC), "")


# Raises why a data set or file must stay, in the transaction that would delete it: topics above use uploads.
RefuseUsed = Callable[[PostgresTransaction, str], Awaitable[None]]


class _RepeatedRequest(Exception):
    """Rolls the transaction back: the request id was used before."""


class PostgresDatasets:
    """Data sets and their contents, which they may share with files.

    A prefix is unreferenced while no content and no file uses the objects under it.
    """

    def __init__(self, session: PostgresSession, refuse_used: RefuseUsed, storage: PostgresStorage) -> None:
        self._session = session
        self._refuse_used = refuse_used
        self._storage = storage

    def reading(self, session: PostgresSession) -> "PostgresDatasets":
        """The same through another session, such as that of lists."""
        return PostgresDatasets(session=session, refuse_used=self._refuse_used, storage=self._storage)

    async def register_prefix(self, prefix: str) -> None:
        """Marks the prefix as unreferenced. Called before the first object is stored under it."""
        await self._session.execute("add_unreferenced_prefix", prefix=prefix)

    async def add(self, dataset: Dataset, request_id: str) -> Dataset:
        """Returns the data set as stored: that of the user's first call with this request id.

        Its content is the existing one if the same file is already stored. Raises `StorageQuotaExceeded`.
        """
        request = request_of(dataset.user, request_id) if request_id else None

        async def add(transaction: PostgresTransaction) -> Dataset:
            await transaction.execute("store_content", **content_values(dataset.content, dataset.project_id))
            await transaction.execute("add_dataset", **_dataset_values(dataset), request_id=request)
            # None where the insert did nothing: the request id has a data set already.
            row = await transaction.fetchrow("read_dataset", dataset_id=dataset.dataset_id)
            if row is None:
                raise _RepeatedRequest
            stored = dataset_from_row(row)
            await self._storage.check_added(transaction, stored.user, stored.project_id, stored.content.use)
            # From now on the prefix is referenced: no sweep deletes its objects.
            await transaction.execute("delete_unreferenced_prefix", prefix=stored.content.prefix)
            author = Author(stored.user, stored.uploaded_at)
            named = stored.dataset_id, stored.name, stored.project_id
            await record_change(transaction, Change(author, Action.UPLOAD, ObjectKind.DATASET, *named))
            return stored

        try:
            return await self._session.run(add)
        except _RepeatedRequest:
            earlier = await self.find_by_request(request_id, dataset.user)
            if earlier is None:
                raise DatasetNotFound(dataset_id=dataset.dataset_id) from None
            return earlier

    async def find_by_request(self, request_id: str, user: str) -> Dataset | None:
        """The data set stored by an earlier call of this user with this request id."""
        request = request_of(user, request_id)
        row = await self._session.fetchrow("find_submitted_dataset", request_id=request)
        return dataset_from_row(row) if row else None

    async def get(self, dataset_id: DatasetId) -> Dataset:
        """Raises `DatasetNotFound`."""
        row = await self._session.fetchrow("read_dataset", dataset_id=dataset_id)
        if row is None:
            raise DatasetNotFound(dataset_id=dataset_id)
        return dataset_from_row(row)

    async def content(self, dataset_id: str) -> NamedContent:
        row = await self._session.fetchrow("read_named_content", upload_id=dataset_id)
        if row is None:
            raise DatasetNotFound(dataset_id=dataset_id)
        return NamedContent(row["name"], content_from_row(row), row["project_id"])

    async def page(self, size: int, after: DatasetCursor | None) -> DatasetPage:
        uploaded_at, dataset_id = (after.uploaded_at, after.dataset_id) if after else _AFTER_ALL

        async def page(transaction: PostgresTransaction) -> DatasetPage:
            rows = await transaction.fetch(
                "list_datasets", before_uploaded_at=uploaded_at, before_dataset_id=dataset_id, limit=size
            )
            # The count of the first page goes on in the cursor: it is not made for each page.
            most = MAX_COUNTED + 1
            total = after.total if after else await transaction.fetchval("count_datasets", most=most)
            datasets = tuple(dataset_from_row(row) for row in rows)
            if len(datasets) < size:
                return DatasetPage(datasets, total, None)
            last = datasets[-1]
            return DatasetPage(datasets, total, DatasetCursor(last.uploaded_at, last.dataset_id, total))

        return await self._session.run(page)

    async def delete(self, dataset_id: DatasetId, author: Author) -> DatasetContent | None:
        """Stores the author too. Returns the content if nothing else uses it.

        Its prefix is then unreferenced.

        Raises `DatasetNotFound`, or `DatasetInUse` if an unfinished run uses the data set.
        """

        async def delete(transaction: PostgresTransaction) -> DatasetContent | None:
            await transaction.execute("lock_dataset_to_delete", dataset_id=dataset_id)
            await self._refuse_used(transaction, dataset_id)
            row = await transaction.fetchrow("lock_dataset_content", dataset_id=dataset_id)
            if row is None:
                raise DatasetNotFound(dataset_id=dataset_id)
            await transaction.execute("delete_dataset", dataset_id=dataset_id)
            named = dataset_id, row["name"], row["project_id"]
            await record_change(transaction, Change(author, Action.DELETE, ObjectKind.DATASET, *named))
            content = content_from_row(row)
            if not await transaction.fetchval("delete_unused_content", **_content_key(row)):
                return None
            # In this transaction: a crash before the objects are deleted leaves a note for the sweep.
            await transaction.execute("add_unreferenced_prefix", prefix=content.prefix)
            return content

        return await self._session.run(delete)

    async def unreferenced_prefixes(self, before: datetime) -> Sequence[str]:
        """Prefixes that have been unreferenced since before that time."""
        rows = await self._session.fetch("list_unreferenced_prefixes", before=before)
        return [row["prefix"] for row in rows]

    async def is_backup_running(self) -> bool:
        return bool(await self._session.fetchval("is_backup_running"))

    async def delete_unreferenced_prefix(self, prefix: str) -> None:
        """Called once no object is left under the prefix."""
        await self._session.execute("delete_unreferenced_prefix", prefix=prefix)


def request_of(user: str, request_id: str) -> UUID:
    """Request ids are unique per user: two users may choose the same one."""
    return uuid5(UUID(request_id), user)


def dataset_from_row(row: asyncpg.Record) -> Dataset:
    return Dataset(
        dataset_id=DatasetId(row["dataset_id"]),
        name=row["name"],
        user=row["username"],
        uploaded_at=row["uploaded_at"],
        content=content_from_row(row),
        project_id=row["project_id"],
    )


def content_from_row(row: asyncpg.Record) -> DatasetContent:
    facts = RowFacts(row["row_count"], row["target_count"], tuple(row["models"]), row["endpoint"])
    return DatasetContent(
        digest=row["digest"],
        format=DatasetFormat(row["format"]),
        size_bytes=row["size_bytes"],
        facts=facts,
        prefix=row["prefix"],
        stored_bytes=row["stored_bytes"],
    )


def _content_key(row: asyncpg.Record) -> Mapping[str, object]:
    return {name: row[name] for name in ("content_project_id", "digest", "format")}


def content_values(content: DatasetContent, project_id: int) -> Mapping[str, object]:
    facts = content.facts
    return {
        "content_project_id": declared_or_none(project_id),
        "digest": content.digest,
        "format": content.format,
        "prefix": content.prefix,
        "size_bytes": content.size_bytes,
        "row_count": facts.row_count,
        "target_count": facts.target_count,
        "models": list(facts.models),
        "endpoint": facts.endpoint,
        "stored_bytes": content.stored_bytes,
    }


def _dataset_values(dataset: Dataset) -> Mapping[str, object]:
    return {
        "dataset_id": dataset.dataset_id,
        "name": dataset.name,
        "username": dataset.user,
        "uploaded_at": dataset.uploaded_at,
        "digest": dataset.content.digest,
        "format": dataset.content.format,
        "project_id": dataset.project_id,
    }


class PostgresFiles:
    """Files, and the contents that valid ones share with data sets. Prefixes: see `PostgresDatasets`."""

    def __init__(self, session: PostgresSession, refuse_used: RefuseUsed, storage: PostgresStorage) -> None:
        self._session = session
        self._refuse_used = refuse_used
        self._storage = storage

    def reading(self, session: PostgresSession) -> "PostgresFiles":
        """The same through another session, such as that of lists."""
        return PostgresFiles(session=session, refuse_used=self._refuse_used, storage=self._storage)

    async def is_backup_running(self) -> bool:
        return bool(await self._session.fetchval("is_backup_running"))

    async def register_prefixes(self, prefixes: Sequence[str]) -> None:
        """Marks the prefixes as unreferenced. Called before the first object is stored under them."""
        rows = [{"prefix": prefix} for prefix in prefixes]
        await self._session.run(lambda transaction: transaction.executemany("add_unreferenced_prefix", rows))

    async def add(self, file: StoredFile, request_id: str) -> StoredFile:
        """Returns the file as stored: that of the user's first call with this request id.

        Raises `StorageQuotaExceeded`.
        """

        async def add(transaction: PostgresTransaction) -> StoredFile:
            stored = await add_file_in(transaction, file, request_id)
            await self._storage.check_added(transaction, file.user, file.project_id, stored.use)
            author = Author(file.user, file.created_at)
            change = Change(author, Action.UPLOAD, ObjectKind.FILE, file.file_id, file.name, file.project_id)
            await record_change(transaction, change)
            return stored

        try:
            return await self._session.run(add)
        except _RepeatedRequest:
            earlier = await self.find_by_request(request_id, file.user)
            if earlier is None:
                raise FileNotFound(file_id=file.file_id) from None
            return earlier

    async def find_by_request(self, request_id: str, user: str) -> StoredFile | None:
        """The file stored by an earlier call of this user with this request id."""
        request = request_of(user, request_id)
        row = await self._session.fetchrow("find_submitted_file", request_id=request)
        return file_from_row(row) if row else None

    async def get(self, file_id: FileId) -> StoredFile:
        """Raises `FileNotFound`."""
        row = await self._session.fetchrow("read_file", file_id=file_id)
        if row is None:
            raise FileNotFound(file_id=file_id)
        return file_from_row(row)

    async def page(self, wanted: FileList) -> FilePage:
        """Raises `FileNotFound` if the file to start after does not exist."""
        created_at, file_id = _BEFORE_ALL if wanted.is_ascending else _AFTER_ALL
        if wanted.after:
            created_at, file_id = (await self.get(wanted.after)).created_at, wanted.after
        rows = await self._session.fetch(
            "list_oldest_files" if wanted.is_ascending else "list_files",
            purpose=wanted.purpose,
            from_created_at=created_at,
            from_file_id=file_id,
            # One more than is shown: then there is a next page.
            limit=wanted.size + 1,
        )
        return FilePage([file_from_row(row) for row in rows[: wanted.size]], len(rows) > wanted.size)

    async def delete(self, file_id: FileId, author: Author | None) -> Sequence[str]:
        """Returns now unreferenced prefixes. Raises `FileNotFound`, `FileInUse` or `FileInUseByRun`.

        Stores the author too; None for a file that has expired.
        """
        return await self._session.run(lambda transaction: self._delete(transaction, file_id, author))

    async def expired(self, now: datetime, limit: int, after: int) -> Sequence[FileId]:
        """Expired files, earliest expiry first, without the first `after` of them."""
        rows = await self._session.fetch("list_expired_files", now=now, limit=limit, offset=after)
        return [FileId(row["file_id"]) for row in rows]

    async def _delete(
        self, transaction: PostgresTransaction, file_id: FileId, author: Author | None
    ) -> Sequence[str]:
        held = await transaction.fetchrow("lock_file_to_delete", file_id=file_id)
        if held is None:
            raise FileNotFound(file_id=file_id)
        await self._refuse_used(transaction, file_id)
        unreferenced = [held["prefix"]]
        key = _content_key(held)
        content = await transaction.fetchval("lock_content", **key)
        await transaction.execute("delete_file", file_id=file_id)
        if author:
            named = file_id, held["name"], held["project_id"]
            await record_change(transaction, Change(author, Action.DELETE, ObjectKind.FILE, *named))
        if content and await transaction.fetchval("delete_unused_content", **key):
            unreferenced.append(content)
        for prefix in unreferenced:
            await transaction.execute("add_unreferenced_prefix", prefix=prefix)
        return unreferenced


async def add_file_in(transaction: PostgresTransaction, file: StoredFile, request_id: str = "") -> StoredFile:
    """Adds a file within a transaction of the caller. Its prefixes are then referenced.

    The quota of its user is not checked: what a batch has paid for is kept.
    """
    content = file.content
    if content:
        await transaction.execute("store_content", **content_values(content, file.project_id))
    request = request_of(file.user, request_id) if request_id else None
    await transaction.execute("add_file", **_file_values(file), request_id=request)
    row = await transaction.fetchrow("read_file", file_id=file.file_id)
    if row is None:
        raise _RepeatedRequest
    stored = file_from_row(row)
    kept = [stored.prefix, *([stored.content.prefix] if stored.content else [])]
    for prefix in kept:
        await transaction.execute("delete_unreferenced_prefix", prefix=prefix)
    return stored


def file_from_row(row: asyncpg.Record) -> StoredFile:
    return StoredFile(
        file_id=FileId(row["file_id"]),
        name=row["name"],
        user=row["username"],
        purpose=FilePurpose(row["purpose"]),
        size_bytes=row["file_bytes"],
        created_at=row["created_at"],
        prefix=row["file_prefix"],
        expires_at=row["expires_at"],
        content=content_from_row(row) if row["digest"] else None,
        faults=FileFaults(faults_from_json(row["faults"]), row["fault_count"]),
        project_id=row["project_id"],
    )


def _file_values(file: StoredFile) -> Mapping[str, object]:
    content = file.content
    return {
        "file_id": file.file_id,
        "name": file.name,
        "username": file.user,
        "purpose": file.purpose,
        "size_bytes": file.size_bytes,
        "created_at": file.created_at,
        "expires_at": file.expires_at,
        "prefix": file.prefix,
        "digest": content.digest if content else None,
        "format": content.format if content else None,
        "faults": faults_to_json(file.faults.first),
        "fault_count": file.faults.count,
        "project_id": file.project_id,
    }
