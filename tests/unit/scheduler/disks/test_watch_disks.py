"""From which share of a disk each kind of work waits, and that a failed look stops nothing."""

from pathlib import Path

import pytest

from services.scheduler.disks.disk_use import (
    COUNTED_BYTES,
    DiskFull,
    DiskStage,
    DiskUse,
    FullDisk,
)
from services.scheduler.disks.file_disk import FileDisk
from services.scheduler.disks.watch_disks import WatchDisks
from tests.fakes.storage.set_disk import DISK_LIMITS, SetDisk

ALL = tuple(DiskStage)


def stopped(watch: WatchDisks) -> list[DiskStage]:
    return [stage for stage in ALL if watch.awaited(stage)]


@pytest.mark.parametrize(
    ("used", "stages"), [(799, 0), (800, 1), (899, 1), (900, 2), (949, 2), (950, 3), (1000, 3), (1200, 3)]
)
async def test_uploads_then_new_runs_then_all_work_waits_as_a_disk_fills_up(used: int, stages: int) -> None:
    watch = WatchDisks([SetDisk(used)], DISK_LIMITS)
    await watch.watch()
    assert stopped(watch) == list(ALL[:stages])


async def test_uploads_are_refused_by_the_fullest_disk_until_it_has_room() -> None:
    postgres, objects = SetDisk(910), SetDisk(830, "the disk of /objects")
    watch = WatchDisks([objects, postgres], DISK_LIMITS)
    watch.check_uploads()
    await watch.watch()
    with pytest.raises(DiskFull) as raised:
        watch.check_uploads()
    assert raised.value.reason == "DISK_FULL"
    assert raised.value.facts == {
        "disk": "The disk of Postgres is 91.0% full; uploads wait until it is below 80%",
        "retry_after_seconds": 60,
    }
    full = "the disk of Postgres is 91.0% full; new runs wait until it is below 90%, uploads until 80%"
    assert watch.full()[0].reason == full
    assert [disk.name for disk in watch.full()] == [postgres.name, objects.name]
    postgres.used = objects.used = 0
    await watch.watch()
    watch.check_uploads()
    assert watch.full() == ()


@pytest.mark.parametrize(("limit", "said"), [(0.57, "57%"), (0.855, "85.5%"), (1.0, "100%")])
def test_the_reason_names_the_limit_as_it_is_set(limit: float, said: str) -> None:
    shown = FullDisk("the disk", 1.0, {DiskStage.UPLOADS: limit}).reason
    assert shown == f"the disk is 100.0% full; uploads wait until it is below {said}"


async def test_a_disk_that_cannot_be_looked_at_is_as_it_was() -> None:
    broken, other = SetDisk(960, "the disk of /broken"), SetDisk(0)
    watch = WatchDisks([broken, other], DISK_LIMITS)
    await watch.watch()
    broken.fault, other.used = OSError("stale handle"), 810
    await watch.watch()
    assert [disk.name for disk in watch.full()] == [broken.name, other.name]
    broken.fault, broken.used = None, 0
    await watch.watch()
    assert [disk.name for disk in watch.full()] == [other.name]


@pytest.mark.parametrize(
    ("size_in_counted", "free_in_counted", "share"),
    [(1, 0.2, 0.8), (40, 0.2, 0.8), (40, 8.0, 0.0), (0.5, 0.1, 0.8)],
)
def test_a_large_disk_is_full_by_what_is_left_of_a_hundred_gibibytes(
    size_in_counted: float, free_in_counted: float, share: float
) -> None:
    size, free = int(size_in_counted * COUNTED_BYTES), int(free_in_counted * COUNTED_BYTES)
    assert DiskUse("a disk", size, free).used_share == pytest.approx(share)


async def test_the_disk_of_a_folder_that_is_not_made_yet_is_that_above_it(tmp_path: Path) -> None:
    there, missing = FileDisk(tmp_path), FileDisk(tmp_path / "objects" / "parts")
    assert (await missing.use()).size == (await there.use()).size > 0
    assert missing.name == f"the disk of {tmp_path}/objects/parts"
