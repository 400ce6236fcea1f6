"""The disk of a folder of this machine."""

import os
from dataclasses import dataclass
from pathlib import Path

from services.scheduler.disks.disk_use import DiskUse


@dataclass(frozen=True, slots=True)
class FileDisk:
    folder: Path

    @property
    def name(self) -> str:
        """By its folder."""
        return f"the disk of {self.folder}"

    async def use(self) -> DiskUse:
        """Raises OSError. What is reserved for root is not free."""
        found = os.statvfs(_existing(self.folder))
        return DiskUse(self.name, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that exists: it is made when something is stored."""
    return next((each for each in (folder, *folder.parents) if each.exists()), folder)
