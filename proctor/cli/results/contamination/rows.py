"""The rows of a suite as texts: lines of JSON, such as the file of its rows, or the export of a run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.cli.results.contamination.corpus import texts_in
from proctor.client.errors import Refused

# Of an export; of any other line all texts are the row's.
_EXPORTED = ("prompt", "target")


@dataclass(slots=True)
class Row:
    """`scores` of its answers by metric: those of an export, mean over rollouts; else empty."""

    name: str
    text: str
    scores: Mapping[str, Sequence[float]]

    def score(self, metric: str) -> float | None:
        given = self.scores.get(metric, ())
        return sum(given) / len(given) if given else None


def read_rows(path: Path, fields: Sequence[str]) -> Sequence[Row]:
    """In the order of the file; rollouts of a row are one. Raises Refused."""
    rows: dict[str, Row] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _add(rows, number, json.loads(line), fields)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} has a line that is no row: {error}.") from error
    if not rows:
        raise Refused(f"{path} has no rows.")
    return [*rows.values()]


def _add(rows: dict[str, Row], number: int, line: object, fields: Sequence[str]) -> None:
    if not isinstance(line, dict):
        raise ValueError(f"line {number} is no object of JSON")  # noqa: TRY004  # of input, not of a caller
    is_exported = "doc_id" in line and "prompt" in line
    name = f"{line.get('task', '')} {line['doc_id']}".strip() if is_exported else str(number)
    row = rows.get(name)
    if row is None:
        row = rows[name] = Row(name, "\n".join(_texts(line, number, fields, is_exported=is_exported)), {})
    given = line.get("scores")
    if is_exported and isinstance(given, dict):
        found = {metric: [*row.scores.get(metric, ())] for metric in {*row.scores, *given}}
        for metric, score in given.items():
            if isinstance(score, int | float):
                found[metric].append(float(score))
        row.scores = found


def _texts(
    line: Mapping[str, Any], number: int, fields: Sequence[str], *, is_exported: bool
) -> Iterator[str]:
    for name in fields:
        if name not in line:
            raise ValueError(f"line {number} has no field {name}")
    chosen = fields or (_EXPORTED if is_exported else tuple(line))
    for name in chosen:
        yield from texts_in(line.get(name))
