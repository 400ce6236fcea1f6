"""Data sets and their contents in Postgres."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid5

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
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
from services.scheduler.uploads.errors import DatasetInUse, DatasetNotFound
from services.scheduler.uploads.ports import NewDataset

_NEWEST = (datetime(9999, 1, 1, tzinfo=UTC), "")


class _RepeatedRequest(Exception):
    """Rolls the transaction back: the request id was used before."""


class PostgresDatasets:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def register_prefix(self, prefix: str) -> None:
        await self._session.execute("add_unreferenced_prefix", prefix)

    async def add(self, new: NewDataset) -> Dataset:
        dataset = new.dataset
        request = request_of(dataset.user, new.request_id) if new.request_id else None

        async def add(transaction: PostgresTransaction) -> Dataset:
            await transaction.execute("store_content", *content_values(dataset.content))
            await transaction.execute("add_dataset", *_dataset_values(dataset), request)
            row = await transaction.fetchrow("get_dataset", dataset.dataset_id)
            if row is None:
                raise _RepeatedRequest
            stored = dataset_from_row(row)
            await transaction.execute("delete_unreferenced_prefix", stored.content.prefix)
            return stored

        try:
            return await self._session.run(add)
        except _RepeatedRequest:
            earlier = await self.find_by_request(new.request_id, dataset.user)
            if earlier is None:
                raise DatasetNotFound(dataset_id=dataset.dataset_id) from None
            return earlier

    async def find_by_request(self, request_id: str, user: str) -> Dataset | None:
        request = request_of(user, request_id)
        row = await self._session.fetchrow("find_dataset_of_request", request)
        return dataset_from_row(row) if row else None

    async def get(self, dataset_id: DatasetId) -> Dataset:
        row = await self._session.fetchrow("get_dataset", dataset_id)
        if row is None:
            raise DatasetNotFound(dataset_id=dataset_id)
        return dataset_from_row(row)

    async def content(self, dataset_id: str) -> NamedContent:
        row = await self._session.fetchrow("get_named_content", dataset_id)
        if row is None:
            raise DatasetNotFound(dataset_id=dataset_id)
        return NamedContent(row["name"], content_from_row(row))

    async def page(self, size: int, after: DatasetCursor | None) -> DatasetPage:
        start = (after.uploaded_at, after.dataset_id) if after else _NEWEST

        async def page(transaction: PostgresTransaction) -> DatasetPage:
            rows = await transaction.fetch("list_datasets", *start, size)
            total = after.total if after else await transaction.fetchval("count_datasets")
            datasets = tuple(dataset_from_row(row) for row in rows)
            is_last = len(datasets) < size
            last = datasets[-1] if datasets else None
            following = (
                None if last is None or is_last else DatasetCursor(last.uploaded_at, last.dataset_id, total)
            )
            return DatasetPage(datasets, total, following)

        return await self._session.run(page)

    async def delete(self, dataset_id: DatasetId) -> DatasetContent | None:
        async def delete(transaction: PostgresTransaction) -> DatasetContent | None:
            await transaction.execute("lock_dataset_to_delete", dataset_id)
            run_id = await transaction.fetchval("run_using_dataset", dataset_id)
            if run_id is not None:
                raise DatasetInUse(dataset_id=dataset_id, run_id=str(run_id))
            row = await transaction.fetchrow("lock_content_of_dataset", dataset_id)
            if row is None:
                raise DatasetNotFound(dataset_id=dataset_id)
            await transaction.execute("delete_dataset", dataset_id)
            content = content_from_row(row)
            key = (content.digest, content.format)
            if not await transaction.fetchval("delete_unused_content", *key):
                return None
            await transaction.execute("add_unreferenced_prefix", content.prefix)
            return content

        return await self._session.run(delete)

    async def unreferenced_prefixes(self, before: datetime) -> Sequence[str]:
        rows = await self._session.fetch("unreferenced_prefixes", before)
        return [row["prefix"] for row in rows]

    async def forget_unreferenced_prefix(self, prefix: str) -> None:
        await self._session.execute("delete_unreferenced_prefix", prefix)


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
    )


def content_from_row(row: asyncpg.Record) -> DatasetContent:
    facts = RowFacts(row["row_count"], row["target_count"], tuple(row["models"]), row["endpoint"])
    return DatasetContent(
        row["digest"], DatasetFormat(row["format"]), row["size_bytes"], facts, row["prefix"]
    )


def content_values(content: DatasetContent) -> tuple[object, ...]:
    facts = content.facts
    return (
        content.digest,
        content.format,
        content.prefix,
        content.size_bytes,
        facts.row_count,
        facts.target_count,
        list(facts.models),
        facts.endpoint,
    )


def _dataset_values(dataset: Dataset) -> tuple[object, ...]:
    content = dataset.content
    return (
        dataset.dataset_id,
        dataset.name,
        dataset.user,
        dataset.uploaded_at,
        content.digest,
        content.format,
    )
