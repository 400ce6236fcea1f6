"""Starts a worker."""

import sys

import uvloop

from services.common.lifecycle import run_service
from services.common.structured_logs import configure_logs
from services.worker.settings import WorkerSettings
from services.worker.wiring import running_worker


def main() -> int:
    settings = WorkerSettings()
    configure_logs("worker", settings.log_level)
    return uvloop.run(run_service("worker", lambda: running_worker(settings)))


if __name__ == "__main__":
    sys.exit(main())
