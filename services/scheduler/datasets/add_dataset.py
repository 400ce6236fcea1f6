"""Takes an upload: checks it on its way, and keeps it whole or not at all."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from services.common.clock import Clock
from services.scheduler.datasets.check_file import CheckedFile, CheckFile
from services.scheduler.datasets.checking.dataset_fault import DatasetFault
from services.scheduler.datasets.dataset import (
    MAX_NAME_LETTERS,
    Dataset,
    DatasetContent,
    DatasetHeader,
    DatasetId,
)
from services.scheduler.datasets.dataset_errors import (
    ObjectStoreUnavailable,
    TooManyUploads,
    UploadRequestTaken,
    UploadSilent,
    UploadTooSlow,
)
from services.scheduler.datasets.delete_objects import prefix_of, try_to_delete_objects
from services.scheduler.datasets.piece_handover import PieceHandover
from services.scheduler.datasets.ports import DatasetStore, NewDataset, ObjectStore
from services.scheduler.errors import InvalidParameter
from services.scheduler.runs.run_order import nul_problem
from services.scheduler.runs.user_name import user_problem

RETRY_AFTER_SECONDS = 30


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Uploads at a time, how long one may take, and how long no piece of it may come.

    The gateway loses patience with its own callers sooner, and tells them more.
    """

    uploads: int
    seconds: float
    silent_seconds: float = 90.0


@dataclass(frozen=True, slots=True)
class AddedDataset:
    """`dataset` is None where the file was refused; then the faults say why."""

    dataset: Dataset | None
    faults: Sequence[DatasetFault] = ()
    fault_count: int = 0


class AddDataset:
    """Each upload is checked by a thread of its own, to which the sender is held back."""

    def __init__(
        self,
        checking: CheckFile,
        datasets: DatasetStore,
        objects: ObjectStore,
        clock: Clock,
        limits: UploadLimits,
    ) -> None:
        self._checking = checking
        self._datasets = datasets
        self._objects = objects
        self._clock = clock
        self._limits = limits
        self._uploads = 0
        self._turn = Lock()
        self._threads = ThreadPoolExecutor(limits.uploads, thread_name_prefix="uploads")

    async def add(
        self, dataset_id: DatasetId, header: DatasetHeader, pieces: AsyncIterator[bytes]
    ) -> AddedDataset:
        """May be over before the last piece was taken."""
        _check(header)
        if header.request_id:
            known = await self._datasets.ordered(header.request_id, header.user)
            if known is not None:
                return AddedDataset(_same_upload(known, header))
        with self._place():
            await self._datasets.begin(prefix_of(dataset_id))
            checked = await self._checked_or_gone(dataset_id, header, pieces)
            return await self._kept(dataset_id, header, checked)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._uploads >= self._limits.uploads:
            raise TooManyUploads(limit=self._limits.uploads, retry_after_seconds=RETRY_AFTER_SECONDS)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    async def _checked_or_gone(
        self, dataset_id: DatasetId, header: DatasetHeader, pieces: AsyncIterator[bytes]
    ) -> CheckedFile:
        checked: CheckedFile | None = None
        try:
            checked = await self._checked(dataset_id, header, pieces)
            return checked
        finally:
            if checked is None or checked.facts is None:
                await asyncio.to_thread(try_to_delete_objects, self._objects, prefix_of(dataset_id))

    async def _checked(
        self, dataset_id: DatasetId, header: DatasetHeader, pieces: AsyncIterator[bytes]
    ) -> CheckedFile:
        handover = PieceHandover(self._turn)

        async def feed() -> None:
            while (piece := await self._next(pieces)) is not None:
                await handover.put(piece)
            handover.end()

        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._check_in_thread, header, handover, dataset_id)
        feeding = asyncio.ensure_future(feed())
        try:
            async with asyncio.timeout(self._limits.seconds):
                await asyncio.wait((work, feeding), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    feeding.result()
                return await asyncio.shield(work)
        except TimeoutError as error:
            raise UploadTooSlow(limit=self._limits.seconds) from error
        finally:
            feeding.cancel()
            handover.break_off()
            # It stores nothing any more once it has ended.
            await asyncio.wait((work, feeding))
            _heed(work, feeding)

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes | None:
        """None at the end. Time in which the check holds the sender back does not count."""
        try:
            async with asyncio.timeout(self._limits.silent_seconds):
                return await anext(pieces, None)
        except TimeoutError as error:
            raise UploadSilent(limit=self._limits.silent_seconds) from error

    def _check_in_thread(
        self, header: DatasetHeader, handover: PieceHandover, dataset_id: DatasetId
    ) -> CheckedFile:
        try:
            with self._turn:
                return self._checking.check(header, handover, prefix_of(dataset_id))
        except OSError as error:
            # Of the files that it needs meanwhile; the object store has an error of its own.
            raise ObjectStoreUnavailable(problem=f"no room for the check ({error.strerror})") from error

    async def _kept(self, dataset_id: DatasetId, header: DatasetHeader, checked: CheckedFile) -> AddedDataset:
        if checked.facts is None:
            return AddedDataset(None, checked.faults, checked.fault_count)
        prefix = prefix_of(dataset_id)
        content = DatasetContent(checked.digest, checked.format, checked.size_bytes, checked.facts, prefix)
        dataset = Dataset(dataset_id, header.name, header.user, self._clock.now(), content)
        # Where this fails it may have been stored all the same; if not, its prefix is loose and is swept.
        stored = await self._datasets.add(NewDataset(dataset, header.request_id))
        if stored.content.prefix != prefix:
            await asyncio.to_thread(try_to_delete_objects, self._objects, prefix)
        return AddedDataset(_same_upload(stored, header))


def _same_upload(stored: Dataset, header: DatasetHeader) -> Dataset:
    """By its name: a file that comes again is not read again."""
    if stored.name != header.name:
        raise UploadRequestTaken(request_id=header.request_id, name=stored.name)
    return stored


def _heed(*futures: asyncio.Future[CheckedFile] | asyncio.Future[None]) -> None:
    """What ended by itself was told already, or nobody asks any more."""
    for future in futures:
        if not future.cancelled():
            future.exception()


def _check(header: DatasetHeader) -> None:
    problem = nul_problem("name", header.name) or user_problem(header.user)
    if problem:
        raise InvalidParameter(field=problem.field, sentence=problem.sentence)
    if not 0 < len(header.name) <= MAX_NAME_LETTERS:
        sentence = f"name has {len(header.name)} letters, but must have 1 to {MAX_NAME_LETTERS}."
        raise InvalidParameter(field="header.name", sentence=sentence)
