"""Values ⇄ proto messages by table: the fields of a dataclass beside those of a message's descriptor.

A `Codec` compiles both directions once, to plain Python: outcomes and samples pass here by the million.
Decision record: docs/decisions/0017-values-have-one-home.md.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, dataclass, fields
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from google.protobuf import message_factory
from google.protobuf.message import Message

from proctor.values.contract_enum import ContractEnum
from proctor.wire import well_known
from proctor.wire.errors import FieldsDiffer, UnknownNumber

V = TypeVar("V")
M = TypeVar("M", bound=Message)

_WELL_KNOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Struct": "struct",
}
_CONTAINERS = {tuple: "tuple", list: "list", frozenset: "frozenset"}


@dataclass(frozen=True, slots=True)
class _Pair:
    """A field of a value and the field, or the oneof, of a message that holds it.

    `descriptors` are several for a oneof only. They are of two unrelated types (python and upb), hence Any.
    """

    name: str
    proto: str
    type: Any
    is_optional: bool
    is_by_name: bool
    descriptors: tuple[Any, ...]

    @property
    def is_oneof(self) -> bool:
        return bool(self.descriptors[0].name != self.proto)


class Codec(Generic[V, M]):
    """Converts between a dataclass and a message.

    Fields are paired by name, or by `names` (field of the value: field of the message). A field that stands
    on one side only is `unpaired`: it is not converted, and a value's needs a default. Any other field
    without a partner raises FieldsDiffer. `nested` are codecs of inner values that need more than names.
    """

    def __init__(
        self,
        value_type: type[V],
        message_type: type[M],
        *,
        names: Mapping[str, str] | None = None,
        unpaired: Collection[str] = (),
        nested: "Collection[Codec[Any, Any]]" = (),
    ) -> None:
        self.value_type = value_type
        self.message_type = message_type
        self._nested = {(each.value_type, each.message_type.DESCRIPTOR.full_name): each for each in nested}
        self._globals: dict[str, Any] = {"Value": value_type, "known": well_known, "unknown": _raise_unknown}
        self.pairs = tuple(self._paired(names or {}, frozenset(unpaired)))
        self.source = f"{self._fill_source()}\n\n{self._read_source()}\n"
        code = compile(self.source, f"<codec of {value_type.__name__}>", "exec")
        exec(code, self._globals)  # noqa: S102  # our own text, made of the field names of two types
        self.fill_function = self._globals["fill"]
        self.read_function = self._globals["read"]

    def to_proto(self, value: V) -> M:
        message = self.message_type()
        self.fill_function(message, value)
        return message

    def fill(self, message: M, value: V) -> None:
        """Writes into an empty message where it lies: cheaper than a message that is copied in."""
        self.fill_function(message, value)

    def from_proto(self, message: M) -> V:
        """Raises UnknownNumber for the number of an enum that has no such member."""
        value: V = self.read_function(message)
        return value

    def _paired(self, names: Mapping[str, str], unpaired: frozenset[str]) -> Iterator[_Pair]:
        hints = get_type_hints(self.value_type)
        descriptor = self.message_type.DESCRIPTOR
        left = {each.name for each in descriptor.fields} - unpaired
        is_by_name = False
        for each in _fields_of(self.value_type):
            # Behind the first argument by name all have to be by name.
            is_by_name = is_by_name or each.kw_only is True or each.name in unpaired
            if each.name in unpaired:
                continue
            proto = names.get(each.name, each.name)
            descriptors = _descriptors(descriptor, proto)
            taken = {found.name for found in descriptors}
            if not taken or not taken <= left:
                raise FieldsDiffer(f"{self._title} has no field {proto} for {each.name}")
            left -= taken
            inner, is_optional = _without_none(hints[each.name])
            yield _Pair(each.name, proto, inner, is_optional, is_by_name, descriptors)
        if left:
            raise FieldsDiffer(f"{self._title} leaves out {', '.join(sorted(left))}")

    @property
    def _title(self) -> str:
        return f"{self.value_type.__name__} ⇄ {self.message_type.DESCRIPTOR.full_name}"

    def _fill_source(self) -> str:
        lines = ["def fill(m, v):"]
        for pair in self.pairs:
            lines += (f"x = v.{pair.name}", *self._fill_lines(pair))
        return "\n    ".join(lines)

    def _fill_lines(self, pair: _Pair) -> Iterator[str]:
        """Only what differs from the default is written: writing a default costs as much as any value."""
        field, path = pair.descriptors[0], f"m.{pair.proto}"
        if pair.is_oneof:
            for inner, held in self._alternatives(pair):
                yield f"if type(x) is {self._known(inner.__name__, inner)}:"
                yield f"    y = m.{held.name}; y.SetInParent(); {self._fill_call('y', 'x', inner, held)}"
        elif field.is_repeated:
            yield from self._fill_many(pair)
        elif field.message_type is None:
            is_given = "x is not None" if pair.is_optional or field.has_presence else "x"
            yield f"if {is_given}: {path} = x{'.number' if field.enum_type else ''}"
        elif field.message_type.full_name in _WELL_KNOWN:
            is_given = "x" if field.message_type.name == "Struct" else "x is not None"
            yield f"if {is_given}: {self._fill_call(path, 'x', pair.type, field)}"
        elif pair.is_optional:
            # Looking at a field does not set it: an inner value of defaults alone would be lost.
            yield "if x is not None:"
            yield f"    y = {path}; y.SetInParent(); {self._fill_call('y', 'x', pair.type, field)}"
        else:
            yield self._fill_call(path, "x", pair.type, field)

    def _fill_many(self, pair: _Pair) -> Iterator[str]:
        field, path = pair.descriptors[0], f"m.{pair.proto}"
        item = _map_item(field)
        if item is not None and item.message_type is None:
            yield f"if x: {path}.update(x)"
        elif item is not None:
            yield f"for k, e in x.items(): {self._fill_call(f'{path}[k]', 'e', get_args(pair.type)[1], item)}"
        elif field.message_type is not None:
            yield f"for e in x: {self._fill_call(f'{path}.add()', 'e', get_args(pair.type)[0], field)}"
        elif field.enum_type is not None:
            yield f"if x: {path}.extend([e.number for e in x])"
        else:
            yield f"if x: {path}.extend(x)"

    def _fill_call(self, path: str, value: str, inner: Any, field: Any) -> str:
        kind = _WELL_KNOWN.get(field.message_type.full_name)
        function = f"known.fill_{kind}" if kind else self._function("fill", inner, field)
        return f"{function}({path}, {value})"

    def _read_source(self) -> str:
        """Arguments by place where that is possible: a call by names takes longer."""
        arguments = [
            f"{pair.name}={self._read_text(pair)}" if pair.is_by_name else self._read_text(pair)
            for pair in self.pairs
        ]
        return "def read(m):\n    return Value(\n        " + ",\n        ".join(arguments) + ",\n    )"

    def _read_text(self, pair: _Pair) -> str:
        field, path = pair.descriptors[0], f"m.{pair.proto}"
        if pair.is_oneof:
            return self._read_oneof(pair)
        if field.is_repeated:
            return self._read_many(pair)
        if field.enum_type is not None:
            read = f'{self._members(pair.type)}.get({path}) or unknown("{pair.proto}", {path})'
            return f"({read}) if {path} else None" if pair.is_optional else read
        read = path if field.message_type is None else self._read_call(path, pair.type, field)
        return f'{read} if m.HasField("{pair.proto}") else None' if pair.is_optional else read

    def _read_oneof(self, pair: _Pair) -> str:
        """The last alternative where none is set, unless the value may be None."""
        text = "None" if pair.is_optional else ""
        for inner, field in reversed(self._alternatives(pair)):
            read = self._read_call(f"m.{field.name}", inner, field)
            text = f'{read} if m.HasField("{field.name}") else {text}' if text else read
        return text

    def _read_many(self, pair: _Pair) -> str:
        field, path = pair.descriptors[0], f"m.{pair.proto}"
        item = _map_item(field)
        if item is not None and item.message_type is None:
            return f"dict({path})"
        if item is not None:
            return f"{{k: {self._read_call('e', get_args(pair.type)[1], item)} for k, e in {path}.items()}}"
        container = _CONTAINERS.get(get_origin(pair.type), "tuple")
        # A slice: most lists are empty, and to iterate over one in a message takes twice as long.
        path = f"{path}[:]"
        if field.message_type is not None:
            return f"{container}([{self._read_call('e', get_args(pair.type)[0], field)} for e in {path}])"
        if field.enum_type is not None:
            members = self._members(get_args(pair.type)[0])
            return f'{container}([{members}.get(e) or unknown("{pair.proto}", e) for e in {path}])'
        return path if container == "list" else f"{container}({path})"

    def _read_call(self, path: str, inner: Any, field: Any) -> str:
        kind = _WELL_KNOWN.get(field.message_type.full_name)
        function = f"known.read_{kind}" if kind else self._function("read", inner, field)
        return f"{function}({path})"

    def _alternatives(self, pair: _Pair) -> list[tuple[Any, Any]]:
        """The types of a union, which are in the order of the fields of the oneof."""
        types = get_args(pair.type) or (pair.type,)
        if len(types) != len(pair.descriptors):
            raise FieldsDiffer(f"{self._title} has another number of alternatives for {pair.name}")
        return list(zip(types, pair.descriptors, strict=True))

    def _function(self, verb: str, inner: Any, field: Any) -> str:
        """The name by which the compiled code calls the codec of an inner value."""
        descriptor = field.message_type
        codec = self._nested.get((inner, descriptor.full_name))
        if codec is None:
            message_type = message_factory.GetMessageClass(descriptor)
            codec = Codec(inner, message_type, nested=self._nested.values())
            self._nested[inner, descriptor.full_name] = codec
        function = codec.fill_function if verb == "fill" else codec.read_function
        return self._known(f"{verb}_{inner.__name__}", function)

    def _members(self, enum: type[ContractEnum]) -> str:
        return self._known(f"{enum.__name__}_members", {member.number: member for member in enum})

    def _known(self, name: str, thing: Any) -> str:
        self._globals[name] = thing
        return name


def _raise_unknown(field: str, number: int) -> None:
    raise UnknownNumber(field, number)


def _fields_of(value_type: Any) -> tuple[Field[Any], ...]:
    return tuple(each for each in fields(value_type) if each.init)


def _descriptors(message: Any, name: str) -> tuple[Any, ...]:
    """The field of that name, or those of the oneof of that name."""
    if name in message.oneofs_by_name:
        return tuple(message.oneofs_by_name[name].fields)
    return (message.fields_by_name[name],) if name in message.fields_by_name else ()


def _map_item(field: Any) -> Any:
    """The descriptor of a map's values; None for other fields."""
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    return field.message_type.fields_by_name["value"] if is_map else None


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The type beside None, and whether None was there."""
    if get_origin(hint) not in {Union, UnionType}:
        return hint, False
    others = tuple(each for each in get_args(hint) if each is not NoneType)
    # The union of one type is the type itself.
    return reduce(or_, others), len(others) < len(get_args(hint))
