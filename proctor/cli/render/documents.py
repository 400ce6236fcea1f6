"""Messages as JSON for scripts: enums as words, times as ISO 8601, durations in seconds, unset as null."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC
from typing import cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from proctor.stack.state import StackState

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def document(message: Message) -> dict[str, Json]:
    # The stubs know two descriptors, one of them of the library's inside.
    fields = cast("Iterable[FieldDescriptor]", message.DESCRIPTOR.fields)
    return {field.name: _field(message, field) for field in fields}


def enum_word(field: FieldDescriptor, number: int) -> str:
    """RUN_STATE_COMPLETED of RunState is "completed"."""
    assert field.enum_type is not None
    names = [value.name for value in field.enum_type.values]
    prefix = names[0].removesuffix("UNSPECIFIED")
    value = field.enum_type.values_by_number.get(number)
    return value.name.removeprefix(prefix).lower() if value else str(number)


def stack_document(stack: StackState | None) -> Json:
    """Without the environment and the DSN, which hold a password."""
    if stack is None:
        return None
    shown: dict[str, Json] = {"supervisor_pid": stack.supervisor_pid, "phase": stack.phase}
    shown |= {
        "gateway_http": stack.gateway_http,
        "gateway_grpc": stack.gateway_grpc,
        "nats_url": stack.nats_url,
    }
    return {**shown, "children": {name: asdict(child) for name, child in stack.children.items()}}


def _field(message: Message, field: FieldDescriptor) -> Json:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {
            str(key): _single(entry, field.message_type.fields_by_name["value"])
            for key, entry in value.items()
        }
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
            return enum_word(field, value)
        case str() | int() | float():
            return value
    raise TypeError(f"{field.full_name} holds a {type(value).__name__}")
