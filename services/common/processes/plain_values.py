"""Values that cross between processes, as MessagePack: plain ones, and dataclasses and enums by their fields.

The bytes are the same on every version of Python. To read them executes nothing, and gives what its type
declares or an error.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
# Reads a value of a code of its own, which MessagePack calls an extension.
ReadExtension = Callable[[int, memoryview], object]

_encoder = msgspec.msgpack.Encoder()


class UnexpectedValue(Exception):
    """The bytes are not a value of the type that is read."""


def to_bytes(value: object) -> bytes:
    """Replaces half a surrogate pair, which is no character. Raises TypeError for what is no plain value."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_of_characters(msgspec.to_builtins(value, builtin_types=(bytes,))))


def _of_characters(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_of_characters(name): _of_characters(each) for name, each in value.items()}
    return [_of_characters(each) for each in value] if isinstance(value, list | tuple) else value


def from_bytes(content: bytes, expected: type[T], read_extension: ReadExtension | None = None) -> T:
    """Raises `UnexpectedValue`."""
    try:
        value: T = _decoder(cast("Hashable", expected), read_extension).decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedValue(f"not a {expected.__name__}: {error}") from error
    return value


@lru_cache
def _decoder(expected: Hashable, read_extension: ReadExtension | None) -> "msgspec.msgpack.Decoder[Any]":
    return msgspec.msgpack.Decoder(cast("type[Any]", expected), ext_hook=read_extension)
