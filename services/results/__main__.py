"""Starts results."""

import sys

from services.common.process import start_process
from services.results.settings import ResultsSettings
from services.results.wiring import running_results


def main() -> int:
    return start_process("results", ResultsSettings, running_results)


if __name__ == "__main__":
    sys.exit(main())
