"""Bytes of messages with thousands of empty items, as nobody who means well sends them."""

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor

Path = tuple[FieldDescriptor, ...]


def lists_in(kind: Descriptor, above: Path = ()) -> Iterator[Path]:
    """The path to each list of a message that is not itself in one."""
    for field in kind.fields:
        if field.is_repeated:
            yield (*above, field)
        elif field.message_type and field.message_type not in [each.message_type for each in above]:
            yield from lists_in(field.message_type, (*above, field))


def all_lists_in(kind: Descriptor, above: Path = ()) -> Iterator[Path]:
    """Those in an item of a list, too."""
    for field in kind.fields:
        if field.is_repeated:
            yield (*above, field)
        nested = field.message_type
        if nested and not is_map(field) and nested not in [each.message_type for each in above]:
            yield from all_lists_in(nested, (*above, field))


def filled(path: Path, count: int) -> bytes:
    """A message with so many empty items in the list."""
    return within(path[:-1], (tag(path[-1]) + b"\0") * count)


def entries(path: Path, count: int) -> bytes:
    """A message with so many keys in the map."""
    entry = path[-1].message_type
    assert entry is not None
    key = entry.fields[0]
    is_text = key.cpp_type == FieldDescriptor.CPPTYPE_STRING
    keys = (b"\x0a\x08%08x" % number if is_text else b"\x08" + varint(number) for number in range(count))
    return within(path[:-1], b"".join(tag(path[-1]) + varint(len(each)) + each for each in keys))


def numbers(path: Path, count: int) -> bytes:
    """A message with so many packed numbers in the list."""
    return within(path[:-1], tag(path[-1]) + varint(count) + b"\1" * count)


def within(path: Path, content: bytes) -> bytes:
    for field in reversed(path):
        content = tag(field) + varint(len(content)) + content
    return content


def tag(field: FieldDescriptor) -> bytes:
    """Of a field with a length."""
    return varint(field.number << 3 | 2)


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
