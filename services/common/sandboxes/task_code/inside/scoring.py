"""Functions of a task that score an answer, each as a function of one row: `doc`, `results`, `gold`.

They are called as lm-evaluation-harness calls them. An error is that of the row, and ends nothing.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from services.common.sandboxes.task_code.inside.errors import fact_of

PROCESS_RESULTS = "process_results"

Row = dict[str, Any]
Function = Callable[..., Any]


def scoring_functions(
    functions: Mapping[str, Function], options: Mapping[str, Row], folder: str
) -> dict[str, Function]:
    """`options`: of each function that is a metric."""
    made: dict[str, Function] = {}
    for key, function in functions.items():
        if key == PROCESS_RESULTS:
            called = partial(_processed, function)
        else:
            called = partial(_measured, function, key, options.get(key, {}))
        made[key] = partial(_kept, called, key, folder)
    return made


def _kept(function: Function, key: str, folder: str, row: Row) -> Row:
    try:
        return {"value": function(row)}
    except Exception as error:  # noqa: BLE001  # whatever the task's code raises
        return {"error": fact_of(error, key, -1, folder)}


def _processed(function: Function, row: Row) -> Row:
    """Values by metric, without those that are no number: a mean leaves them out."""
    results = [tuple(one) if isinstance(one, list) else one for one in row["results"]]
    values = function(row["doc"], results)
    if not isinstance(values, Mapping):
        raise TypeError(f"it returned {type(values).__name__}, not a dict")
    return {str(name): value for name, value in values.items() if not _is_nan(value)}


def _measured(function: Function, name: str, options: Row, row: Row) -> Any:
    [result], gold = row["results"], row["gold"]
    if isinstance(gold, list):
        scores = [_called(function, name, options, one, result) for one in gold]
        return 1.0 if any(scores) else 0.0
    value = _called(function, name, options, gold, result)
    return None if _is_nan(value) else value


def _called(function: Function, name: str, options: Row, gold: str, result: str) -> Any:
    try:
        value = function(references=[gold], predictions=[result], **options)
    except TypeError:
        value = function([gold, result])
    return value[name] if isinstance(value, dict) else value


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
