"""Joins what watches the disks."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from services.common.lifecycle import every
from services.scheduler.disks.disk_use import DiskLimits
from services.scheduler.disks.file_disk import FileDisk
from services.scheduler.disks.postgres import PostgresDisk
from services.scheduler.disks.watch_disks import Disk, WatchDisks
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings

# A disk of gigabytes does not fill up in less.
_WATCH_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskParts:
    watch: WatchDisks

    def loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        return {"watch disks": every(_WATCH_SECONDS, self.watch.watch, name="watch disks")}


def make_disks(settings: SchedulerSettings, connections: Connections) -> DiskParts:
    limits = DiskLimits(
        uploads=settings.disk_share_for_uploads,
        new_runs=settings.disk_share_for_new_runs,
        dispatch=settings.disk_share_for_dispatch,
    )
    disks: list[Disk] = []
    store = urlsplit(settings.object_store)
    # In a local stack Postgres and NATS lie on it too.
    if store.scheme == "file":
        disks.append(FileDisk(folder=Path(unquote(store.path))))
    if settings.postgres_disk_bytes:
        disks.append(PostgresDisk(session=connections.postgres, size=settings.postgres_disk_bytes))
    return DiskParts(watch=WatchDisks(disks=disks, limits=limits))
