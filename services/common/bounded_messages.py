"""Messages of others, whose items are counted before anything else looks at them.

Two bytes of a message are an item of a list: two million of them are 4 MiB, which take 0.2 s to parse, and a
minute to convert and check. What anybody may send is counted in its bytes, before it is parsed.
"""

import functools
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from proctor.v1 import limits_pb2

M = TypeVar("M", bound=Message)

MAX_ITEMS = 1000
# Of all lists of a message together: lists in lists have a limit each.
MAX_ITEMS_IN_ALL = 250_000
# The tag of an item, and its length or value. Numbers are packed: they have no tags.
_ITEM_BYTES = 2
_NUMBER_BYTES = 1
# A message of at most so many bytes has few items, wherever they are: lists in lists are not counted.
_SMALL_BYTES = 64 * 1024
# One of at most so many has no more than `MAX_ITEMS_IN_ALL` texts and messages; numbers are cheap to convert.
# Senders of large lists stay below it, because each item is then judged by its bytes, which takes a tenth of
# the time of a count.
MAX_BYTES_UNCOUNTED = _ITEM_BYTES * MAX_ITEMS_IN_ALL
# Of wire types. Marks of groups have no value.
_VARINT, _BYTES = 0, 2
_FIXED_BYTES = {1: 8, 3: 0, 4: 0, 5: 4}


class TooManyItems(DecodeError):
    """A list of the message, `field`, has more than `limit` items."""

    def __init__(self, field: str, limit: int) -> None:
        super().__init__(f"{field} has more than {limit} items")
        self.field = field
        self.limit = limit


class TooManyBytes(DecodeError):
    """The message has more than `limit` bytes."""


class TooManyParts(DecodeError):
    """The message has more than `limit` fields and items."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it has more than {limit} fields and items")
        self.limit = limit


def read_message(kind: type[M], content: bytes, max_bytes: int | None = None) -> M:
    """Raises DecodeError where these are not the bytes of one, `TooManyBytes`, `TooManyItems` and
    `TooManyParts`.

    `max_bytes`: NATS limits the payload of a server and the messages of a stream, but not those of a subject.
    """
    if max_bytes is not None and len(content) > max_bytes:
        raise TooManyBytes(f"it has {len(content)} bytes, more than {max_bytes}")
    if len(content) > MAX_BYTES_UNCOUNTED:
        # 8 MiB of empty items take 0.2 s to parse, as long as their count, and 320 MiB once they are parsed.
        check_parts(kind, content, MAX_ITEMS_IN_ALL)
    read = _read(kind, content)
    # Raised here: a traceback through the frame that has the message would keep it in memory.
    if isinstance(read, TooManyItems):
        raise read
    return read


def check_parts(kind: type[Message], content: bytes, limit: int) -> None:
    """Counts the fields of a large message, and of all in it that may have lists, without parsing it.

    It costs 1 µs per field, and a large message has few of them. Raises `TooManyParts`, and DecodeError where
    these are not the bytes of a message.
    """
    if len(content) <= _SMALL_BYTES:
        return
    # Not by recursion: the sender chooses the depth.
    messages = [(kind.DESCRIPTOR, 0, len(content))]
    count = 0
    try:
        while messages:
            in_message, position, end = messages.pop()
            nested = _nested_with_lists(in_message)
            while position < end:
                number, start, position = _field(content, position)
                count += 1
                if count > limit:
                    raise TooManyParts(limit)
                if number in nested:
                    messages.append((nested[number], start, position))
    except (IndexError, KeyError):
        raise DecodeError("it does not consist of fields") from None


def _field(content: bytes, position: int) -> tuple[int, int, int]:
    """Its number, and where its value begins and ends. Raises IndexError and KeyError where there is none."""
    tag, start = _varint(content, position)
    wire = tag & 7
    if wire == _BYTES:
        length, start = _varint(content, start)
        return tag >> 3, start, start + length
    end = _varint(content, start)[1] if wire == _VARINT else start + _FIXED_BYTES[wire]
    return tag >> 3, start, end


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """A number, and where it ends. Raises IndexError where it has more than 64 bits or no end."""
    value = 0
    for shift in range(0, 64, 7):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError


def _read(kind: type[M], content: bytes) -> M | TooManyItems:
    message = kind.FromString(content)
    return _Count(len(content)).excess(message) or message


class _Count:
    """Counts the items of one message of so many bytes."""

    def __init__(self, size: int) -> None:
        self._is_small = size <= _SMALL_BYTES
        self._is_uncounted = size <= MAX_BYTES_UNCOUNTED
        self._left = MAX_ITEMS_IN_ALL

    def excess(self, message: Any, path: str = "") -> TooManyItems | None:
        """The first list that is too long."""
        for name, limit, has_lists in _lists_in(message.DESCRIPTOR):
            if limit:
                items = getattr(message, name)
                found = self._excess_of_list(items, f"{path}{name}", limit, has_lists=has_lists)
            elif message.HasField(name):
                found = self.excess(getattr(message, name), f"{path}{name}.")
            else:
                continue
            if found:
                return found
        return None

    def _excess_of_list(self, items: Any, path: str, limit: int, *, has_lists: bool) -> TooManyItems | None:
        self._left -= len(items)
        if len(items) > limit:
            return TooManyItems(path, limit)
        if self._left < 0:
            return TooManyItems(path, MAX_ITEMS_IN_ALL)
        if self._is_small or not has_lists:
            return None
        nested: Iterable[Any] = items.values() if hasattr(items, "values") else items
        if self._is_uncounted:
            nested = [each for each in nested if each.ByteSize() > _fitting_bytes(each.DESCRIPTOR)]
        return next((found for each in nested if (found := self.excess(each, f"{path}."))), None)


@functools.cache
def _lists_in(kind: Descriptor) -> tuple[tuple[str, int, bool], ...]:
    """Lists, and messages that have some: name, limit (0 for a message), whether the items have lists."""
    found = []
    for field in kind.fields:
        has_lists = _has_lists(_item(field), frozenset((kind,)))
        if field.is_repeated:
            limit = field.GetOptions().Extensions[limits_pb2.max_items] or MAX_ITEMS
            found.append((field.name, limit, has_lists))
        elif has_lists:
            found.append((field.name, 0, has_lists))
    return tuple(found)


@functools.cache
def _fitting_bytes(kind: Descriptor) -> int:
    """A message of at most so many bytes has no list with more items than its limit, however deep."""
    return _fewest_bytes(kind, frozenset())


def _fewest_bytes(kind: Descriptor, above: frozenset[Descriptor]) -> int:
    """Of the lists in it, each as full as it may be."""
    fewest = MAX_BYTES_UNCOUNTED
    for field in kind.fields:
        if field.is_repeated:
            limit = field.GetOptions().Extensions[limits_pb2.max_items] or MAX_ITEMS
            is_number = field.cpp_type not in (
                FieldDescriptor.CPPTYPE_STRING,
                FieldDescriptor.CPPTYPE_MESSAGE,
            )
            fewest = min(fewest, limit * (_NUMBER_BYTES if is_number else _ITEM_BYTES))
        item = _item(field)
        if item is not None and item not in above:
            fewest = min(fewest, _fewest_bytes(item, above | {kind}))
    return fewest


@functools.cache
def _nested_with_lists(kind: Descriptor) -> dict[int, Descriptor]:
    """Messages in it that may have lists, by the number of their field."""
    messages = ((field.number, field.message_type) for field in kind.fields)
    return {number: each for number, each in messages if each and _has_lists(each, frozenset((kind,)))}


def _item(field: FieldDescriptor) -> Descriptor | None:
    """The message of its items, of a map those of its values."""
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        kind = kind.fields_by_name["value"].message_type
    return kind


def _has_lists(kind: Descriptor | None, above: frozenset[Descriptor]) -> bool:
    """A message that may hold one of its own kind has them if the rest of it has."""
    if kind is None or kind in above:
        return False
    return any(field.is_repeated or _has_lists(_item(field), above | {kind}) for field in kind.fields)
