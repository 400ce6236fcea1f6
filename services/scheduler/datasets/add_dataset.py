"""Takes an upload: checks it on its way, and keeps it whole or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from services.common.clock import Clock
from services.scheduler.datasets.check_file import CheckedFile, CheckFile
from services.scheduler.datasets.checking.faults import DatasetFault
from services.scheduler.datasets.dataset import (
    MAX_NAME_LETTERS,
    Dataset,
    DatasetContent,
    DatasetHeader,
    DatasetId,
)
from services.scheduler.datasets.dataset_errors import UploadRequestTaken
from services.scheduler.datasets.delete_objects import prefix_of, try_to_delete_objects
from services.scheduler.datasets.ports import DatasetStore, NewDataset, ObjectStore
from services.scheduler.datasets.uploads import Uploads
from services.scheduler.errors import InvalidParameter
from services.scheduler.requests import nul_problem, user_problem


@dataclass(frozen=True, slots=True)
class AddedDataset:
    """`dataset` is None where the file was refused; then the faults say why."""

    dataset: Dataset | None
    faults: Sequence[DatasetFault] = ()
    fault_count: int = 0


@dataclass(frozen=True)
class AddDataset:
    """Each upload is checked by a thread of its own, to which the sender is held back."""

    checking: CheckFile
    datasets: DatasetStore
    objects: ObjectStore
    clock: Clock
    uploads: Uploads

    async def add(
        self, dataset_id: DatasetId, header: DatasetHeader, chunks: AsyncIterator[bytes]
    ) -> AddedDataset:
        """May be over before the last chunk was taken."""
        check_header(header.name, header.user)
        known = None
        if header.request_id:
            known = await self.datasets.ordered(header.request_id, header.user)
        if known is not None:
            _check_name(known, header)
            if header.digest == known.content.digest:
                return AddedDataset(known)
        with self.uploads.place():
            await self.datasets.begin(prefix_of(dataset_id))
            checked = await self._checked_or_gone(dataset_id, header, chunks)
            if known is not None and checked.facts is None:
                # What is kept has no faults, so this is another file.
                raise UploadRequestTaken(request_id=header.request_id, name=known.name)
            return await self._kept(dataset_id, header, checked)

    async def _checked_or_gone(
        self, dataset_id: DatasetId, header: DatasetHeader, chunks: AsyncIterator[bytes]
    ) -> CheckedFile:
        prefix, checked = prefix_of(dataset_id), None
        try:
            checked = await self.uploads.checked(
                chunks, lambda given: self.checking.check(header, given, prefix)
            )
            return checked
        finally:
            if checked is None or checked.facts is None:
                await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)

    async def _kept(self, dataset_id: DatasetId, header: DatasetHeader, checked: CheckedFile) -> AddedDataset:
        if checked.facts is None:
            return AddedDataset(None, checked.faults, checked.fault_count)
        prefix = prefix_of(dataset_id)
        content = DatasetContent(checked.digest, checked.format, checked.size_bytes, checked.facts, prefix)
        dataset = Dataset(dataset_id, header.name, header.user, self.clock.now(), content)
        # Where this fails it may have been stored all the same; if not, its prefix is loose and is swept.
        stored = await self.datasets.add(NewDataset(dataset, header.request_id))
        if stored.content.prefix != prefix:
            await asyncio.to_thread(try_to_delete_objects, self.objects, prefix)
        _check_name(stored, header)
        if (stored.content.digest, stored.content.format) != (checked.digest, checked.format):
            raise UploadRequestTaken(request_id=header.request_id, name=stored.name)
        return AddedDataset(stored)


def _check_name(stored: Dataset, header: DatasetHeader) -> None:
    """Raises `UploadRequestTaken`."""
    if stored.name != header.name:
        raise UploadRequestTaken(request_id=header.request_id, name=stored.name)


def check_header(name: str, user: str) -> None:
    """What is said of any upload before its first byte. Raises `InvalidParameter`."""
    problem = nul_problem("name", name) or user_problem(user)
    if problem:
        raise InvalidParameter(field=problem.field, sentence=problem.sentence)
    if not 0 < len(name) <= MAX_NAME_LETTERS:
        sentence = f"name has {len(name)} letters, but must have 1 to {MAX_NAME_LETTERS}."
        raise InvalidParameter(field="header.name", sentence=sentence)
