"""Starts a worker."""

import sys

from services.common.processes.lean_start import start_lean

if __name__ == "__main__":
    start_lean()

from services.common.process import start_process
from services.worker.settings import WorkerSettings
from services.worker.wiring import BEYOND_DRAIN_SECONDS, running_worker


def main() -> int:
    return start_process(
        "worker",
        WorkerSettings,
        running_worker,
        metrics_labels=lambda settings: {"pool": settings.pool},
        beyond_drain_seconds=BEYOND_DRAIN_SECONDS,
    )


if __name__ == "__main__":
    sys.exit(main())
