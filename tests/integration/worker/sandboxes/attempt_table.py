"""Runs the attempts to escape, to abuse and to cheat, and prints what came of each in each engine.

A test that passes is an attempt that was held, unless it says otherwise by `record_property("outcome", …)`.
Arguments are pytest's.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

FILES = ("test_escapes.py", "test_abuse.py", "test_hostile_files.py", "test_verifier_cheats.py")
HELD, FAILED, ABSENT = "held", "NOT HELD", "–"


@dataclass
class Outcomes:
    """Outcomes by file and attempt, and in these by engine."""

    found: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        engine = properties.get("engine")
        if engine is None or not (report.when == "call" or report.failed):
            return
        file, _, name = report.nodeid.rpartition("/")[2].partition("::")
        row = self.found.setdefault((file, _attempt(name, str(engine))), {})
        outcome = str(properties.get("outcome", HELD)) if report.passed else FAILED
        row[str(engine)] = FAILED if FAILED in (outcome, row.get(str(engine))) else outcome

    @property
    def engines(self) -> list[str]:
        return sorted({engine for row in self.found.values() for engine in row})


def _attempt(name: str, engine: str) -> str:
    function, _, parameters = name.partition("[")
    words = function.removeprefix("test_").replace("_", " ")
    rest = parameters.removesuffix("]").replace(engine, "", 1).strip("-")
    return f"{words}: {rest}" if rest else words


def table_of(outcomes: Outcomes) -> Table:
    table = Table("attempt", *outcomes.engines)
    last = ""
    for (file, attempt), row in outcomes.found.items():
        if file != last:
            table.add_section()
            table.add_row(f"[bold]{file}")
            last = file
        table.add_row(attempt, *(row.get(engine, ABSENT) for engine in outcomes.engines))
    table.add_section()
    for engine_outcomes in _counts(outcomes):
        table.add_row(*engine_outcomes)
    return table


def _counts(outcomes: Outcomes) -> list[list[str]]:
    counts = {
        engine: Counter(row[engine] for row in outcomes.found.values() if engine in row)
        for engine in outcomes.engines
    }
    names = sorted({name for count in counts.values() for name in count})
    return [[f"[bold]{name}", *(str(counts[engine][name]) for engine in outcomes.engines)] for name in names]


def main() -> int:
    folder, outcomes = Path(__file__).parent, Outcomes()
    code = pytest.main(["-q", *(str(folder / file) for file in FILES), *sys.argv[1:]], plugins=[outcomes])
    Console(width=160).print(table_of(outcomes))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
