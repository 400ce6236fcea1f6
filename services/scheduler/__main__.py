"""Starts the scheduler."""

import sys

from services.common.process import start_process
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import running_scheduler


def main() -> int:
    return start_process("scheduler", SchedulerSettings, running_scheduler)


if __name__ == "__main__":
    sys.exit(main())
