"""Prints every skipped test of a JUnit file and fails on one that is not on the short list."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def skipped(report: Path) -> list[tuple[str, str]]:
    """(classname::name, reason) of each skipped test."""
    rows = []
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314  # written by our own test run
        mark = case.find("skipped")
        if mark is not None:
            rows.append((f"{case.get('classname')}::{case.get('name')}", mark.get("message") or ""))
    return rows


def allowed(listing: Path) -> list[str]:
    """Prefixes of tests that may be skipped."""
    lines = listing.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def main() -> int:
    rows = skipped(Path(sys.argv[1]))
    prefixes = allowed(Path(sys.argv[2]))
    unexpected = [name for name, _ in rows if not any(name.startswith(prefix) for prefix in prefixes)]
    print(f"Skipped tests: {len(rows)}")  # noqa: T201  # a script
    for name, reason in rows:
        print(f"  {name}: {reason}{'  <- not on the list' if name in unexpected else ''}")  # noqa: T201
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
