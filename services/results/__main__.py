"""Starts results; with the argument `migrate` it only brings the schema up to date."""

import gc
import sys

if __name__ == "__main__":
    # Nothing that an import makes is garbage: collections would be an eighth of the start.
    gc.disable()

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
