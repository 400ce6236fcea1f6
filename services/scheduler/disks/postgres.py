"""The disk of Postgres, which only its server sees: its size is a setting, its use that of its databases."""

from dataclasses import dataclass

from services.common.postgres import PostgresSession
from services.scheduler.disks.disk_use import DiskUse


@dataclass(frozen=True, slots=True)
class PostgresDisk:
    session: PostgresSession
    size: int
    name: str = "the disk of Postgres"

    async def use(self) -> DiskUse:
        used: int = await self.session.fetchval("sum_database_bytes")
        return DiskUse(self.name, self.size, self.size - used)
