"""Rows of a Parquet file as they cross between processes: MessagePack, with extensions for what it lacks.

They come back equal and of the same types: dates and times with their zones, decimals, UUIDs, pairs of maps.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec.msgpack import Ext

from services.common.processes.plain_values import UnexpectedValue, from_bytes, to_bytes
from services.scheduler.suites.rows.errors import UnreadableValue
from services.scheduler.suites.rows.row_source import SourceRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DATE, _TIME, _DATETIME, _ZONED, _DURATION, _DECIMAL, _UUID, _TUPLE = range(1, 9)
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


def rows_to_bytes(rows: Sequence[SourceRow | str]) -> bytes:
    """A text in the place of a row says why that is left out. Raises `UnreadableValue`."""
    return to_bytes(_plain(rows))


def rows_from_bytes(content: bytes) -> Sequence[SourceRow | str]:
    """Raises `UnexpectedValue`."""
    return from_bytes(content, list[dict[str, Any] | str], _cell)


def _plain(value: object) -> object:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    write = _WRITERS.get(kind)
    if write is None:
        raise UnreadableValue(f"it is a {kind.__module__}.{kind.__name__}")
    return write(value)


def _datetime(value: datetime) -> Ext:
    # The offset is in the text. The name of a zone is not, nor which of two equal times of a night it is.
    if not isinstance(value.tzinfo, ZoneInfo):
        return _text(_DATETIME, value.isoformat())
    return Ext(_ZONED, to_bytes((value.tzinfo.key, (value - _EPOCH) // _MICROSECOND)))


def _text(code: int, text: str) -> Ext:
    return Ext(code, text.encode())


_WRITERS: Mapping[type, Callable[[Any], Ext]] = {
    date: lambda value: _text(_DATE, value.isoformat()),
    time: lambda value: _text(_TIME, value.isoformat()),
    datetime: _datetime,
    timedelta: lambda value: Ext(_DURATION, to_bytes((value.days, value.seconds, value.microseconds))),
    Decimal: lambda value: _text(_DECIMAL, str(value)),
    UUID: lambda value: Ext(_UUID, value.bytes),
    tuple: lambda value: Ext(_TUPLE, to_bytes([_plain(each) for each in value])),
}


def _zoned(content: bytes) -> datetime:
    zone, microseconds = from_bytes(content, tuple[str, int])
    return (_EPOCH + microseconds * _MICROSECOND).astimezone(ZoneInfo(zone))


_READERS: Mapping[int, Callable[[bytes], object]] = {
    _DATE: lambda content: date.fromisoformat(content.decode()),
    _TIME: lambda content: time.fromisoformat(content.decode()),
    _DATETIME: lambda content: datetime.fromisoformat(content.decode()),
    _ZONED: _zoned,
    _DURATION: lambda content: timedelta(*from_bytes(content, tuple[int, int, int])),
    _DECIMAL: lambda content: Decimal(content.decode()),
    _UUID: lambda content: UUID(bytes=content),
    _TUPLE: lambda content: tuple(from_bytes(content, list[Any], _cell)),
}


def _cell(code: int, content: memoryview) -> object:
    try:
        return _READERS[code](content.tobytes())
    except (ValueError, ArithmeticError, LookupError, OSError) as error:
        raise UnexpectedValue(f"not a cell: {error}") from error
