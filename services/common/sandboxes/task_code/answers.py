"""Reads the lines that code wrote of rows; none is trusted."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.common.postgres import storable_json
from services.common.sandboxes.task_code.inside.program import BATCH_ROWS
from services.common.sandboxes.task_code.ports import CodeEnded

Said = Mapping[str, Any]
# What is wrong where one key of a row gets another value.
_OTHER_VALUE = (
    "makes another {key} of row {row} where the rows are asked in another order: a function may keep nothing"
    " between two rows"
)
# One object each: a NaN that is asked again is then equal to the first one in what has both.
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def answers(lines: Iterable[bytes], other_value: str = _OTHER_VALUE) -> Iterator[Said]:
    """What the code says of each row; some are asked again, and have to get the same. Raises CodeEnded.

    `other_value`: what is wrong where they do not.
    """
    count = 0
    # What was made of the latest rows, for those that are asked again.
    recent: dict[int, object] = {}
    for line in lines:
        said = read_line(line)
        if "again" in said:
            if not isinstance(said["again"], int):
                raise CodeEnded("wrote a line that is no row")
            if said["again"] >= count:
                raise CodeEnded("ended before its last row")
            _check_again(said, recent, other_value)
        elif "end" in said:
            if said["end"] != count:
                raise CodeEnded("ended before its last row")
            return
        else:
            recent[count % BATCH_ROWS] = said.get("made")
            count += 1
            yield said


def read_line(line: bytes) -> Said:
    """With characters alone, which can be kept. Raises CodeEnded, also where it says that the code failed."""
    try:
        said = json.loads(storable_json(line.decode()), parse_constant=_NO_NUMBERS.__getitem__)
    except (ValueError, RecursionError) as error:
        raise CodeEnded("wrote a line that is no JSON") from error
    if not isinstance(said, dict):
        raise CodeEnded("wrote a line that is no row")
    if isinstance(said.get("error"), dict):
        raise CodeEnded(told(said["error"]))
    return said


def told(error: Mapping[str, object]) -> str:
    """What the program inside says of an error of the code, as a clause."""
    key, where = f"{error.get('key')!s:.40}", f"{error.get('where')!s:.200}"
    row = error.get("doc_id")
    at = f" at row {row}" if isinstance(row, int) and row >= 0 else ""
    if absent := error.get("absent"):
        return (
            f"needs the package {absent!s:.80} for {key}; its operator may put it into the folder "
            "PROCTOR_TASK_CODE_PACKAGES"
        )
    return f"failed in {key}{at}{f' ({where})' if where else ''}: {error.get('text')!s:.300}"


def _check_again(said: Said, recent: Mapping[int, object], other_value: str) -> None:
    again, made = said["again"], said.get("made")
    first = recent.get(again % BATCH_ROWS)
    if made == first:
        return
    keys = first if isinstance(first, dict) else {}
    differing = [key for key in keys if not isinstance(made, dict) or made.get(key) != keys[key]]
    raise CodeEnded(other_value.format(key=differing[0] if differing else "row", row=again))
