"""Starts results."""

import sys

import uvloop

from services.common.lifecycle import run_service
from services.common.structured_logs import configure_logs
from services.results.settings import ResultsSettings
from services.results.wiring import running_results


def main() -> int:
    settings = ResultsSettings()
    configure_logs("results", settings.log_level)
    return uvloop.run(run_service("results", lambda: running_results(settings)))


if __name__ == "__main__":
    sys.exit(main())
