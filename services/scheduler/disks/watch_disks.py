"""Watches how full the disks are, and says what waits for room.

Every replica watches for itself: the disk of a folder is that of its own machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.common.structured_logs import error_text, get_logger
from services.scheduler.disks.disk_use import (
    RETRY_AFTER_SECONDS,
    DiskFull,
    DiskLimits,
    DiskStage,
    DiskUse,
    FullDisk,
)
from services.scheduler.metrics import DISK_USED

log = get_logger()


class Disk(Protocol):
    """A disk on which Proctor stores."""

    @property
    def name(self) -> str:
        """As in `DiskUse`."""
        ...

    async def use(self) -> DiskUse:
        """Its use now. Raises what keeps it from being read."""
        ...


@dataclass(slots=True)
class WatchDisks:
    disks: Sequence[Disk]
    limits: DiskLimits
    _full: tuple[FullDisk, ...] = field(default=(), init=False)

    async def watch(self) -> None:
        """Reads each disk once. One that cannot be read is as it was: no work stops by a failed look."""
        known = {disk.name: disk for disk in self._full}
        found = []
        for disk in self.disks:
            try:
                use = await disk.use()
            except Exception as error:  # noqa: BLE001  # the others are looked at all the same
                log.warning("disk cannot be looked at", disk=disk.name, error=error_text(error))
                found.append(known.get(disk.name))
                continue
            DISK_USED.labels(disk.name).set(use.used_share)
            full = self.limits.full(use)
            _log_change(disk.name, known.get(disk.name), full)
            found.append(full)
        self._full = tuple(sorted(filter(None, found), key=lambda each: each.used_share, reverse=True))

    def full(self) -> Sequence[FullDisk]:
        """The disks for which work waits, the fullest first."""
        return self._full

    def awaited(self, stage: DiskStage) -> str | None:
        """Why work of this stage waits; None if there is room for it."""
        stopping = next((disk for disk in self._full if disk.stage >= stage), None)
        return f"waiting for room: {stopping.reason_for(stage)}" if stopping else None

    def check_uploads(self) -> None:
        """Raises `DiskFull` where there is no room for what users add."""
        if self._full:
            reason = self._full[0].reason_for(DiskStage.UPLOADS)
            raise DiskFull(disk=reason[:1].upper() + reason[1:], retry_after_seconds=RETRY_AFTER_SECONDS)


def _log_change(name: str, before: FullDisk | None, now: FullDisk | None) -> None:
    if now and (before is None or before.stage < now.stage):
        log.error("disk fills up", disk=name, reason=now.reason)
    elif before and now is None:
        log.info("disk has room again", disk=name)
