"""Messages as JSON for scripts: enums as words, times as ISO 8601, durations in seconds, unset as null."""

from collections.abc import Iterable
from datetime import UTC
from typing import cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from proctor.cli.render.words import enum_word

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def document(message: Message) -> dict[str, Json]:
    # The stubs have two classes of descriptors, one of them internal to the library.
    fields = cast("Iterable[FieldDescriptor]", message.DESCRIPTOR.fields)
    return {field.name: _field(message, field) for field in fields}


def _field(message: Message, field: FieldDescriptor) -> Json:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name["value"]
        return {str(key): _single(item, entry) for key, item in value.items()}
    if field.is_repeated:
        return [_single(item, field) for item in value]
    return _single(value, field)


def _single(value: object, field: FieldDescriptor) -> Json:
    match value:
        case Timestamp():
            return value.ToDatetime(UTC).isoformat()
        case Duration():
            return value.ToTimedelta().total_seconds()
        case Struct():
            return dict(MessageToDict(value))
        case Message():
            return document(value)
        case bytes():
            return value.hex()
        case int() if field.enum_type is not None:
            return enum_word(field.enum_type, value)
        case str() | int() | float():
            return value
    raise TypeError(f"{field.full_name} holds a {type(value).__name__}")
