"""A row as JSON text: what is kept of it for those who look at a sample later."""

import base64
from collections.abc import Mapping

import orjson

from services.scheduler.suites.rows.row_source import Row

_LARGEST_INTEGER = 2**63 - 1


def row_as_json(row: Row) -> bytes:
    """Fields in their order. Raises `TypeError` where lists stand in lists more than 250 deep.

    What JSON cannot say is said in one way: a number that is not finite is null; dates and times are ISO
    text, bytes base64, whole numbers over 64 bits their digits, lone surrogates a question mark, and anything
    else is the text that Python makes of it.
    """
    try:
        return orjson.dumps(row)
    except TypeError:
        return _dumped_as_can_be(row)


def _dumped_as_can_be(row: Row) -> bytes:
    try:
        return orjson.dumps(_sayable(row), default=str)
    except RecursionError as error:
        raise TypeError("nested too deeply") from error


def _sayable(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_INTEGER else str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {_sayable(str(key)): _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return value
