"""Uploads that end otherwise than well: nothing remains of them, and the next one has its place."""

import asyncio
import io
import os
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from services.common.errors import DependencyUnavailable, InvalidSetting, ObjectStoreUnavailable
from services.common.objects.obstore_objects import ObstoreObjects
from services.scheduler.disks.disk_use import DiskFull
from services.scheduler.disks.watch_disks import WatchDisks
from services.scheduler.uploads.add_dataset import AddDataset, AddedDataset
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.dataset import Dataset, DatasetHeader, DatasetId
from services.scheduler.uploads.delete_uploads import prefix_of
from services.scheduler.uploads.errors import CheckStopped, TooManyUploads, UploadSilent, UploadTooSlow
from services.scheduler.uploads.processes.checking import start_check
from services.scheduler.uploads.processes.upload_checks import PROGRAM
from services.scheduler.uploads.quotas.storage_use import NO_QUOTA, StorageUse
from tests.fakes.scheduler.surroundings import SetClock
from tests.fakes.scheduler.upload_stores import EmptyStorage
from tests.fakes.storage import hostile_checks
from tests.fakes.storage.checked_files import NO_LIMITS, jsonl
from tests.fakes.storage.memory_objects import MemoryObjects
from tests.fakes.storage.set_disk import DISK_LIMITS, SetDisk

DATASET = DatasetId("ds_" + "0" * 32)
# What hardly compresses: two parts.
HEAVY = jsonl({"prompt": os.urandom(1_000_000).hex()} for _ in range(18))


@dataclass
class KeptDatasets:
    """Keeps what is added; or says that Postgres is away."""

    is_away: bool = False
    kept: list[Dataset] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)

    async def add(self, dataset: Dataset, request_id: str) -> Dataset:  # noqa: ARG002  # as the port has it
        if self.is_away:
            raise DependencyUnavailable(dependency="Postgres")
        self.kept.append(dataset)
        return dataset

    async def register_prefix(self, prefix: str) -> None:
        self.begun.append(prefix)

    async def find_by_request(self, request_id: str, user: str) -> Dataset | None:  # noqa: ARG002  # as the port has it
        return None


async def sent(chunks: Iterable[bytes], *, is_hanging: bool = False) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if is_hanging:
        await asyncio.Event().wait()


class Adding:
    def __init__(
        self,
        *,
        seconds: float = 60.0,
        silent_seconds: float = 60.0,
        refuse_after: int = 1_000_000,
        uploads: int = 1,
        per_user: int = 1,
        program: str = PROGRAM,
        limit: StorageUse = NO_QUOTA.limit,
    ) -> None:
        self.objects = MemoryObjects(refuse_after=refuse_after)
        self.disk = SetDisk()
        self.disks = WatchDisks([self.disk], DISK_LIMITS)
        self.datasets = KeptDatasets()
        self._adding = AddDataset(
            program,
            NO_LIMITS,
            self.datasets,  # type: ignore[arg-type]  # adding needs no more of the port
            self.objects,
            SetClock(),
            Uploads(
                UploadLimits(
                    uploads=uploads, per_user=per_user, seconds=seconds, silent_seconds=silent_seconds
                ),
                start_check,
                self.disks.check_uploads,
            ),
            EmptyStorage(limit),
        )

    async def add(self, chunks: AsyncIterator[bytes], user: str = "ann") -> AddedDataset:
        return await self._adding.add(DATASET, DatasetHeader("x.jsonl", user), chunks)

    async def next_is_taken(self) -> bool:
        return (await self.add(sent([jsonl([{"prompt": "x"}])]))).dataset is not None


async def test_parquet_is_decoded_within_the_limits_of_its_check() -> None:
    written = io.BytesIO()
    parquet.write_table(pa.table({"prompt": ["x", "y"], "target": ["1", "2"]}), written)
    added = await Adding().add(sent([written.getvalue()]))
    assert added.dataset is not None, added.faults
    assert added.dataset.content.facts.row_count == 2


async def test_upload_that_takes_too_long_is_given_up() -> None:
    uploads = Adding(seconds=3.0)
    with pytest.raises(UploadTooSlow):
        await uploads.add(sent([HEAVY[:1000]], is_hanging=True))
    assert uploads.objects.contents == {}
    assert await uploads.next_is_taken()


async def test_caller_who_falls_silent_gives_his_slot_to_the_next() -> None:
    uploads = Adding(silent_seconds=0.05)
    with pytest.raises(UploadSilent):
        await uploads.add(sent([HEAVY[:1000]], is_hanging=True))
    assert uploads.objects.contents == {}
    assert await uploads.next_is_taken()


async def test_caller_who_sends_hardly_a_byte_gives_his_slot_to_the_next() -> None:
    async def trickling() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0)

    uploads = Adding(silent_seconds=0.05)
    with pytest.raises(UploadSilent):
        await uploads.add(trickling())
    assert await uploads.next_is_taken()


async def test_user_with_all_his_slots_leaves_those_of_others() -> None:
    uploads, both_hang = Adding(uploads=3, per_user=2), asyncio.Event()

    async def hanging() -> AsyncIterator[bytes]:
        yield HEAVY[:1000]
        await both_hang.wait()

    going = [asyncio.ensure_future(uploads.add(hanging())) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyUploads) as raised:
        await uploads.add(sent([HEAVY]))
    assert raised.value.facts == {"whose": "Your", "limit": 2, "retry_after_seconds": 30}
    assert raised.value.reason == "TOO_MANY_UPLOADS"
    assert (await uploads.add(sent([HEAVY]), user="bob")).dataset is not None
    both_hang.set()
    await asyncio.gather(*going)
    assert await uploads.next_is_taken()


async def test_an_upload_is_refused_while_a_disk_fills_up() -> None:
    uploads = Adding()
    uploads.disk.used = 800
    await uploads.disks.watch()
    with pytest.raises(DiskFull):
        await uploads.add(sent([HEAVY]))
    assert not list(uploads.objects.keys(""))
    uploads.disk.used = 799
    await uploads.disks.watch()
    assert await uploads.next_is_taken()


async def test_upload_is_checked_while_the_store_lets_another_wait() -> None:
    uploads, first_is_stored = Adding(uploads=2, per_user=2), threading.Event()
    asked, put = threading.Event(), uploads.objects.put

    def slow_put(key: str, chunks: Sequence[bytes]) -> None:
        if not asked.is_set():
            asked.set()
            assert first_is_stored.wait(60)
        put(key, chunks)

    uploads.objects.put = slow_put  # type: ignore[method-assign]  # the first one waits
    slow = asyncio.ensure_future(uploads.add(sent([HEAVY])))
    await asyncio.to_thread(asked.wait, 60)
    assert await uploads.next_is_taken()
    first_is_stored.set()
    assert (await slow).dataset is not None


async def test_check_that_takes_too_much_memory_ends_only_itself() -> None:
    uploads = Adding(program=hostile_checks.PROGRAM)
    with pytest.raises(CheckStopped) as raised:
        await uploads.add(sent([HEAVY]))
    assert raised.value.reason == "CHECK_STOPPED"


async def test_store_that_fails_in_the_middle_ends_the_upload_while_it_comes() -> None:
    uploads = Adding(refuse_after=1)
    with pytest.raises(ObjectStoreUnavailable):
        await uploads.add(sent([HEAVY], is_hanging=True))
    assert uploads.objects.contents == {}


async def test_caller_who_fails_in_the_middle_is_reported_of() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield HEAVY[: len(HEAVY) // 2]
        raise ConnectionError("gone")

    uploads = Adding()
    with pytest.raises(ConnectionError):
        await uploads.add(failing())
    assert uploads.objects.contents == {}
    assert await uploads.next_is_taken()


async def test_rows_stay_where_it_is_unknown_whether_the_data_set_was_stored() -> None:
    """A commit whose answer was lost has happened all the same; else the sweep takes them."""
    uploads = Adding()
    uploads.datasets.is_away = True
    with pytest.raises(DependencyUnavailable):
        await uploads.add(sent([jsonl([{"prompt": "x"}])]))
    assert uploads.objects.contents != {}
    assert uploads.datasets.begun == [prefix_of(DATASET)]


async def test_sender_is_held_back_by_a_check_that_is_slow() -> None:
    taken = 0

    async def eager() -> AsyncIterator[bytes]:
        nonlocal taken
        for start in range(0, len(HEAVY), 65_536):
            taken += 1
            yield HEAVY[start : start + 65_536]

    uploads = Adding(refuse_after=0)
    with pytest.raises(ObjectStoreUnavailable):
        await uploads.add(eager())
    assert taken < len(HEAVY) / 65_536 * 0.75


@pytest.mark.parametrize("url", ["ftp://x/y", "/tmp/x", "s3://", "file://host/x", "az://container/x"])
def test_address_that_is_no_object_store_is_reported_at_the_start(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InvalidSetting, match="PROCTOR_SCHEDULER_OBJECT_STORE cannot be used: "):
        ObstoreObjects(url)


def test_folder_that_cannot_be_made_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match="Not a directory"):
        ObstoreObjects((tmp_path / "file" / "objects").as_uri())
