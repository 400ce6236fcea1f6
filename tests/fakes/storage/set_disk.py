"""A disk as full as a test says."""

from dataclasses import dataclass

from services.scheduler.disks.disk_use import DiskLimits, DiskUse

DISK_LIMITS = DiskLimits(uploads=0.8, new_runs=0.9, dispatch=0.95)
_SIZE = 1000


@dataclass
class SetDisk:
    """`fault` is raised where it is looked at."""

    used: int = 0
    name: str = "the disk of Postgres"
    fault: Exception | None = None

    async def use(self) -> DiskUse:
        """Of 1,000 bytes."""
        if self.fault:
            raise self.fault
        return DiskUse(self.name, _SIZE, _SIZE - self.used)
