"""Archives the oldest closed runs by age or by bytes, as their projects or the installation say."""

from dataclasses import dataclass
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.audit.audit_record import Author
from services.scheduler.runs.archives.postgres import PostgresRunArchives

# Days and gigabytes decide, so minutes do not matter.
LOOK_SECONDS = 60.0
# As the audit names who did it.
AUTHOR = "proctor"


@dataclass(frozen=True, slots=True)
class ArchiveOldRuns:
    """Both are of runs whose project says nothing; 0 archives none of them.

    `over_bytes`: what the answers of all of these runs together may take in Postgres.
    """

    archives: PostgresRunArchives
    clock: Clock
    after_days: int = 0
    over_bytes: int = 0

    async def lead(self) -> NoReturn:
        """Looks for ever, in the leader."""
        await every(LOOK_SECONDS, self.archive, name="archive old runs")

    async def archive(self) -> None:
        """Orders some archives. The next ones wait until these are made, and until what users ordered is.

        None where results has no store for them: a store needs a restart, and each order leaves a record.
        """
        if self.archives.has_no_store or await self.archives.moving():
            return
        now = self.clock.now()
        reasons = {
            run_id: f"its answers are beyond {most} bytes, and the oldest"
            for run_id, most in (await self.archives.beyond(self.over_bytes)).items()
        }
        for run_id, days in (await self.archives.old(self.after_days, now)).items():
            reasons[run_id] = f"it ended more than {days} days ago"
        for run_id, reason in reasons.items():
            await self.archives.archive(run_id, Author(AUTHOR, now), reason)
