"""Starts the scheduler; with the argument `migrate` it only brings the schema up to date."""

import gc
import sys

if __name__ == "__main__":
    # Nothing that an import makes is garbage: collections would be an eighth of the start.
    gc.disable()

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
