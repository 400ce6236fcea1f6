"""Starts the scheduler."""

import sys

import uvloop

from services.common.lifecycle import run_service
from services.common.structured_logs import configure_logs
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import running_scheduler


def main() -> int:
    settings = SchedulerSettings()
    configure_logs("scheduler", settings.log_level)
    return uvloop.run(run_service("scheduler", lambda: running_scheduler(settings)))


if __name__ == "__main__":
    sys.exit(main())
