"""Messages as bodies of the REST API: fields of the same name are converted by their types."""

import functools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar, get_args

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel

from proctor.v1 import comparison_pb2, model_pb2, run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.usage import TokenUsage
from proctor.wire.enums import described_word, shown_word
from proctor.wire.values import USAGE
from services.gateway.http.project_names import project_name

M = TypeVar("M", bound=BaseModel)

WithInterval = summary_pb2.MetricFigure | comparison_pb2.Difference
Reader = Callable[[Message], object]


class Done(BaseModel):
    """The body of a change that returns nothing else."""

    message: str


def present(model: type[M], /, *messages: Message, **given: object) -> M:
    """A body of type `model` with the fields of `messages` that have the same names.

    `given` takes precedence, then the first message. Enum values become words; timestamps become datetimes,
    or seconds since 1970 for fields of type int. What is unset, empty or unspecified becomes None where the
    model allows None. `project_name` is the name of the project whose number is in `project_id`.
    """
    kinds = tuple([message.DESCRIPTOR for message in messages])
    fields = _fields(model, kinds, frozenset(given))
    return model(**{name: read(messages[at]) for name, at, read in fields}, **given)


def optional(message: Message, field: str) -> float | None:
    """The number of a field with presence; None when it is unset."""
    return getattr(message, field) if message.HasField(field) else None


def moment(timestamp: Timestamp) -> datetime | None:
    """None when the timestamp is unset."""
    if not timestamp.seconds:
        return None
    # As `ToDatetime`, in a quarter of the time: rows of lists have several.
    return datetime.fromtimestamp(timestamp.seconds, UTC).replace(microsecond=timestamp.nanos // 1000)


def interval(message: WithInterval) -> tuple[float, float] | None:
    """The 95 % interval of a figure; None when it is undefined."""
    has_interval = message.HasField("ci_low") and message.HasField("ci_high")
    return (message.ci_low, message.ci_high) if has_interval else None


def json_value(text: str) -> Any:
    """The value of a JSON text. None for an empty text, and for a NaN in it, which JSON does not have."""
    return json.loads(text, parse_constant=lambda _: None) if text else None


def json_text(value: object) -> str:
    """Raises ValueError for values that JSON cannot hold: NaN, half a character."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    return text


def state_of(worker: scheduler_pb2.WorkerInfo) -> str:
    """Its state, such as "not loaded", and its note."""
    state = shown_word(model_pb2.WorkerState, worker.state)
    return "; ".join(filter(None, (state, worker.note)))


def benchmark_of(order: run_pb2.RunOrder) -> str:
    """The suite of the order, or the id of its data set or of the run that it judges."""
    return order.suite or order.dataset_id or order.judge.run_id


# The fields are compared once for each combination of types, and not for each message.
@functools.cache
def _fields(
    model: type[BaseModel], kinds: tuple[Descriptor, ...], given: frozenset[str]
) -> tuple[tuple[str, int, Reader], ...]:
    """The fields of the model that a message has, with the index of the first one that has it."""
    found: list[tuple[str, int, Reader]] = []
    for name in model.model_fields.keys() - given:
        source = "project_id" if name == "project_name" else name
        at = next((index for index, kind in enumerate(kinds) if source in kind.fields_by_name), None)
        if at is None:
            continue
        if source != name:
            found.append((name, at, _project_name))
            continue
        annotation = model.model_fields[name].annotation
        found.append((name, at, _reader(kinds[at].fields_by_name[name], annotation)))
    return tuple(found)


def _project_name(message: Message) -> str | None:
    return project_name(message.project_id) or None  # type: ignore[attr-defined]  # looked up before


def _reader(field: FieldDescriptor, annotation: object) -> Reader:
    if field.is_repeated:
        return _repeated_reader(field, _model_in(annotation))
    nullable = NoneType in get_args(annotation)
    if field.message_type:
        return _message_reader(field, annotation, nullable=nullable)
    return _plain_reader(field, nullable=nullable)


def _message_reader(field: FieldDescriptor, annotation: object, *, nullable: bool) -> Reader:
    name = field.name
    if field.message_type is Timestamp.DESCRIPTOR and int in (annotation, *get_args(annotation)):
        return lambda message: getattr(message, name).seconds or (None if nullable else 0)
    if field.message_type is Timestamp.DESCRIPTOR:
        return lambda message: moment(getattr(message, name))
    if annotation is TokenUsage:
        return lambda message: USAGE.from_proto(getattr(message, name))
    nested = _model_in(annotation)
    return lambda message: (
        present(nested, getattr(message, name)) if message.HasField(name) or not nullable else None
    )


def _plain_reader(field: FieldDescriptor, *, nullable: bool) -> Reader:
    name = field.name
    if field.enum_type:
        return _word_reader(name, field.enum_type, nullable=nullable)
    if field.has_presence:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    # An unset switch is off; any other unset field is null.
    if nullable and field.cpp_type != FieldDescriptor.CPPTYPE_BOOL:
        return lambda message: getattr(message, name) or None
    return attrgetter(name)


def _word_reader(name: str, enum: EnumDescriptor, *, nullable: bool) -> Reader:
    words: dict[int, str | None] = {number: described_word(enum, number) for number in enum.values_by_number}
    if nullable:
        words[0] = None

    def read(message: Message) -> object:
        number = getattr(message, name)
        return words[number] if number in words else described_word(enum, number)

    return read


def _repeated_reader(field: FieldDescriptor, nested: type[BaseModel]) -> Reader:
    name = field.name
    if field.message_type and field.message_type.GetOptions().map_entry:
        return lambda message: dict(getattr(message, name))
    if nested is not BaseModel:
        return lambda message: [present(nested, each) for each in getattr(message, name)]
    return lambda message: list(getattr(message, name))


def _model_in(annotation: object) -> type[BaseModel]:
    """The model of `Model`, `Model | None` or `list[Model]`; BaseModel for none."""
    candidates = (annotation, *get_args(annotation))
    return next(
        (each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), BaseModel
    )
