"""Prints every skipped test of JUnit files and fails on one that is not on the short list: LIST REPORT…"""

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
    listing, *reports = map(Path, sys.argv[1:])
    rows = [row for report in reports for row in skipped(report)]
    prefixes = allowed(listing)
    unexpected = [name for name, _ in rows if not any(name.startswith(prefix) for prefix in prefixes)]
    print(f"Skipped tests: {len(rows)}")
    for name, reason in rows:
        print(f"  {name}: {reason}{'  <- not on the list' if name in unexpected else ''}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
