"""Counts what came back of a batch: each custom_id once over both files, each file in the order of the input.

`python -m tests.harness.batch_counts INPUT OUTPUT [ERRORS]` prints counts and fails on any fault.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

_SHOWN = 5


@dataclass(frozen=True)
class BatchCount:
    """`codes`: how many lines of the error file have which; `problems` is empty where all is right."""

    lines: int
    answered: int
    codes: Counter[str]
    problems: Sequence[str] = ()

    def __str__(self) -> str:
        codes = "".join(f", {count} {code}" for code, count in sorted(self.codes.items()))
        reported = f"{self.lines} lines: {self.answered} answered{codes}"
        return "\n".join((reported, *(self.problems or ("each once, in order",))))


@dataclass
class _Returned:
    """The lines of one file by their position in the input, and problems of the file."""

    name: str
    positions: list[int] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    ids: set[str] = field(default_factory=set)

    def problems(self) -> Iterable[str]:
        if self.strangers:
            yield f"{self.name}: {len(self.strangers)} were not asked: {_some(self.strangers)}"
        if self.positions != sorted(self.positions):
            yield f"{self.name} is not in the order of the input"
        if len(self.ids) != len(self.positions) + len(self.strangers):
            yield f"{self.name}: ids of lines come twice"


def count_batch(given: bytes, output: bytes, errors: bytes = b"") -> BatchCount:
    """All three as JSON lines; a file that is not there is empty."""
    wanted = [orjson.loads(line)["custom_id"] for line in given.splitlines() if line.strip()]
    positions = {custom_id: index for index, custom_id in enumerate(wanted)}
    answers, failures = _read("output", output, positions), _read("errors", errors, positions)
    reported = [*answers.problems(), *failures.problems()]
    if answers.codes:
        reported.append(f"output: failures are among the answers: {dict(answers.codes)}")
    if failures.codes.total() != len(failures.positions) + len(failures.strangers):
        reported.append("errors: answers are among the failures")
    times = Counter(answers.positions + failures.positions)
    missing = [custom_id for index, custom_id in enumerate(wanted) if index not in times]
    doubled = [wanted[index] for index, count in times.items() if count > 1]
    reported += [f"{len(missing)} are missing: {_some(missing)}"] if missing else []
    reported += [f"{len(doubled)} come more than once: {_some(doubled)}"] if doubled else []
    return BatchCount(len(wanted), len(answers.positions), failures.codes, tuple(reported))


def _read(name: str, content: bytes, positions: dict[str, int]) -> _Returned:
    returned = _Returned(name)
    for text in content.splitlines():
        line = orjson.loads(text)
        returned.ids.add(line["id"])
        index = positions.get(line["custom_id"])
        if index is None:
            returned.strangers.append(line["custom_id"])
        else:
            returned.positions.append(index)
        if line["error"] is not None:
            returned.codes[line["error"]["code"]] += 1
        elif line["response"]["status_code"] != 200:
            returned.codes[str(line["response"]["status_code"])] += 1
    return returned


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("input", None), ("output", None), ("errors", "?")):
        parser.add_argument(name, type=Path, nargs=count)
    files = parser.parse_args()
    errors = files.errors.read_bytes() if files.errors else b""
    counted = count_batch(files.input.read_bytes(), files.output.read_bytes(), errors)
    sys.stdout.write(f"{counted}\n")
    sys.exit(1 if counted.problems else 0)


if __name__ == "__main__":
    main()
