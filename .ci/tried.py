"""tried.py RUN TEXT…: a run by the installed package has answers and figures, and no text names make.

Only a checkout has make. RUN is what `proctor try --json` printed.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path


def main(arguments: list[str]) -> int:
    run, *texts = arguments
    problems = [
        *_problems_of_run(Path(run)),
        *(each for text in texts for each in _problems_of_text(Path(text))),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _problems_of_run(path: Path) -> Iterator[str]:
    summary = json.loads(path.read_text(encoding="utf-8"))["summary"]
    figures = [metric["mean"] for task in summary["tasks"] for metric in task["metrics"]]
    print(f"{summary['answered']} answers, {len(figures)} figures.")
    if not summary["answered"] or summary["failed"]:
        yield f"{path}: {summary['answered']} answers, and the machinery failed on {summary['failed']}"
    if all(figure is None for figure in figures):
        yield f"{path}: no figure is defined"


def _problems_of_text(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if re.search(r"\bmake\b", line):
            yield f"{path}:{number}: the installed package names make: {line}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
