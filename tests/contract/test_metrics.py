"""Names of metrics end as those of Prometheus do, and their labels have few values."""

import re
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(proctor_\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
ROWS = [
    (name, kind, re.findall(r"`(\w+)`", labels))
    for name, kind, labels in ROW.findall(REFERENCE.read_text(encoding="utf-8"))
]
# Each has values that are known beforehand, or come from the pools file and the contracts.
BOUNDED = {
    *("backend", "code", "currency", "disk", "disposition", "gpu", "kind", "method", "model", "pool"),
    *("priority", "purpose", "reason", "release", "result", "route", "service", "state", "status", "stream"),
}
# What a gauge or histogram measures, at the end of its name; a gauge without one counts things.
UNITS = ("seconds", "bytes", "ratio", "info")


def test_there_are_metrics() -> None:
    assert len(ROWS) > 40


def test_names_are_unique_and_end_with_what_they_count() -> None:
    names = [name for name, *_ in ROWS]
    assert len(names) == len(set(names))
    for name, kind, _ in ROWS:
        assert (kind == "counter") is name.endswith("_total"), name
        if kind == "histogram":
            assert name.endswith(UNITS), name
        assert not re.search(r"_(ms|milliseconds|percent|minutes|mb)(_|$)", name), name


def test_labels_have_few_values() -> None:
    assert {label for _, _, labels in ROWS for label in labels} <= BOUNDED
