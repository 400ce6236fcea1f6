"""Enums of the contracts as members of our own enums, and as words: PRIORITY_HIGH of Priority is "high"."""

from typing import Any, Protocol, TypeVar

from google.protobuf.descriptor import EnumDescriptor

from proctor.values.contract_enum import ContractEnum

E = TypeVar("E", bound=ContractEnum)
V_co = TypeVar("V_co", covariant=True)


class ProtoEnum(Protocol[V_co]):
    """A generated enum, such as `run_pb2.Priority`."""

    @property
    def DESCRIPTOR(self) -> EnumDescriptor: ...  # noqa: N802  # protobuf's name

    def Value(self, name: str) -> V_co: ...  # noqa: N802  # protobuf's name


def member_of(enum: type[E], number: int) -> E | None:
    """The member with that number; None for unspecified and for a number of a newer version."""
    return next((member for member in enum if member.number == number), None)


def number_of(member: ContractEnum | None) -> Any:
    """The number of the contract, 0 (unspecified) for None; any enum field of a message takes it."""
    return 0 if member is None else member.number


def word_of(enum: ProtoEnum[object], number: int) -> str:
    """The name of a value in lower case, without the prefix of its enum."""
    return described_word(enum.DESCRIPTOR, number)


def shown_word(enum: ProtoEnum[object], number: int) -> str:
    """The word as people read it, with spaces; empty for the unspecified value."""
    return word_of(enum, number).replace("_", " ") if number else ""


def described_word(enum: EnumDescriptor, number: int) -> str:
    """The name of a value in lower case, without its prefix. A number without a name is itself, as text."""
    value = enum.values_by_number.get(number)
    return value.name.removeprefix(_prefix(enum)).lower() if value else str(number)


def words_of(enum: ProtoEnum[object]) -> list[str]:
    """The words of all values but the unspecified one."""
    return [word_of(enum, value.number) for value in enum.DESCRIPTOR.values if value.number]


def value_of(enum: ProtoEnum[V_co], word: str, unset: str = "unspecified") -> V_co:
    """The value with that word. `unset` stands for the unspecified value; other words raise ValueError."""
    name = "UNSPECIFIED" if word == unset else word.upper()
    return enum.Value(f"{_prefix(enum.DESCRIPTOR)}{name}")


def _prefix(enum: EnumDescriptor) -> str:
    """The prefix of the names of its values; the unspecified one comes first."""
    return enum.values[0].name.removesuffix("UNSPECIFIED")
