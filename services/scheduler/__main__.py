"""Starts the scheduler; with the argument `migrate` it only brings the schema up to date."""

import sys

from services.common.processes.lean_start import start_lean

if __name__ == "__main__":
    start_lean()

from services.common.migrations import MIGRATE, start_migration
from services.common.process import hide_from_own_user, start_process
from services.scheduler.postgres import MIGRATIONS, SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import running_scheduler


def main() -> int:
    if sys.argv[1:] == [MIGRATE]:
        return start_migration(SCHEMA, SchedulerSettings, MIGRATIONS)
    hide_from_own_user()
    return start_process("scheduler", SchedulerSettings, running_scheduler)


if __name__ == "__main__":
    sys.exit(main())
