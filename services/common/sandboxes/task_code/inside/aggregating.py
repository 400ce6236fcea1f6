"""Functions of a task that make a figure of what all answers score, with draws of a bootstrap."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from services.common.sandboxes.task_code.inside.errors import fact_of

DRAWS = 200
# A function that takes longer gets no interval: fewer draws would say little.
DRAWING_SECONDS = 20.0
_SEED = 1234

Row = dict[str, Any]
Units = Mapping[int, list[Any]]


def figures(functions: Mapping[str, Callable[..., Any]], rows: Iterable[Row], folder: str) -> Iterator[Row]:
    """A line for each function. Rows have `values` by metric, and a `unit`: what belongs together."""
    by_metric: dict[str, dict[int, list[Any]]] = {metric: {} for metric in functions}
    for row in rows:
        for metric, value in row["values"].items():
            by_metric[metric].setdefault(row["unit"], []).append(value)
    for metric, function in functions.items():
        try:
            yield {"metric": metric, **_figure(function, by_metric[metric])}
        except Exception as error:  # noqa: BLE001  # whatever the task's code raises
            yield {"metric": metric, "failed": fact_of(error, metric, -1, folder)}


def _figure(function: Callable[..., Any], units: Units) -> Row:
    figure = float(function(_values(units, units)))
    draws: list[float] = []
    chosen, numbers = random.Random(_SEED), list(units)
    end = time.monotonic() + DRAWING_SECONDS
    while len(numbers) > 1 and len(draws) < DRAWS:
        try:
            draws.append(float(function(_values(units, chosen.choices(numbers, k=len(numbers))))))
        except Exception:  # noqa: BLE001  # such as a draw with one class only: no interval then
            draws = []
            break
        if time.monotonic() > end:
            break
    return {"figure": figure, "draws": draws if len(draws) == DRAWS else []}


def _values(units: Units, numbers: Iterable[int]) -> list[Any]:
    return [value for number in numbers for value in units[number]]
