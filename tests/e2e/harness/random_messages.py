"""Messages of any contract at random: edges of numbers, ids that exist, texts that parsers dislike."""

import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_TEXTS = (
    "",
    "x",
    "a\0b",
    "é" * 40,
    "\u202e🙂",
    "-1",
    "' OR 1=1 --",
    "../../etc/passwd",
    "{{ 7 * 7 }}",
    "(x+x+)+y",
)
_LONG = "y" * 20_000
_WHOLE = (0, 1, -1, 2, 7, 1000, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_REAL = (0.0, -1.0, 0.5, 1e308, -1e308, float("nan"), float("inf"), 1e-320)
_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_MAX_LEVELS = 4


class RandomMessages:
    """The same messages for the same seed. `known` are ids and names of things that exist."""

    def __init__(self, seed: int, known: Sequence[str]) -> None:
        self._draw = random.Random(seed)
        self._known = known

    def message(self, kind: Any, level: int = 0) -> Message:
        made: Message = GetMessageClass(kind)()
        for field in kind.fields:
            # Half of the fields, and fewer below, so that some messages are nearly right.
            if self._draw.random() < 0.5 - 0.08 * level:
                self._fill(made, field, level)
        return made

    def _fill(self, made: Any, field: FieldDescriptor, level: int) -> None:
        if field.message_type is None:
            value = self._scalar(field)
            if field.is_repeated:
                getattr(made, field.name).extend([value, self._scalar(field)])
            else:
                setattr(made, field.name, value)
            return
        if level >= _MAX_LEVELS:
            return
        if field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            if value.message_type is None:
                getattr(made, field.name)[self._scalar(key)] = self._scalar(value)
        elif field.is_repeated:
            for _ in range(self._draw.randrange(3)):
                getattr(made, field.name).append(self.message(field.message_type, level + 1))
        else:
            getattr(made, field.name).CopyFrom(self.message(field.message_type, level + 1))

    def _scalar(self, field: FieldDescriptor) -> Any:
        kind = field.cpp_type
        if kind in _BOUNDS:
            low, high = _BOUNDS[kind]
            return self._draw.choice([number for number in _WHOLE if low <= number <= high])
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            numbers = [each.number for each in field.enum_type.values] if field.enum_type else []
            return self._draw.choice([*numbers, 77])
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return self._draw.random() < 0.5
        if kind in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
            return self._draw.choice(_REAL)
        text = self._text()
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text

    def _text(self) -> str:
        chance = self._draw.random()
        if chance < 0.5:
            return self._draw.choice(self._known)
        return _LONG if chance > 0.97 else self._draw.choice(_TEXTS)
