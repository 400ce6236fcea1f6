"""Starts results; with the argument `migrate` it only brings the schema up to date."""

import sys

from services.common.processes.lean_start import start_lean

if __name__ == "__main__":
    start_lean()

from services.common.migrations import MIGRATE, start_migration
from services.common.process import start_process
from services.results.postgres import MIGRATIONS, SCHEMA
from services.results.settings import ResultsSettings
from services.results.wiring import running_results


def main() -> int:
    if sys.argv[1:] == [MIGRATE]:
        return start_migration(SCHEMA, ResultsSettings, MIGRATIONS)
    return start_process("results", ResultsSettings, running_results)


if __name__ == "__main__":
    sys.exit(main())
