"""The form of every enum that is also one of the contracts: a word with a number."""

from enum import StrEnum
from typing import Self


class ContractEnum(StrEnum):
    """A member is its word; `number` is that of the contracts and of the tables. Members order by number.

    What a contract leaves unspecified is None here, never a member.
    """

    number: int

    # The default is for type checkers, which read `Priority("high")` as a call of this.
    def __new__(cls, word: str, number: int = 0) -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.number = number
        return member

    @classmethod
    def of_number(cls, number: int) -> Self:
        """Raises ValueError for a number without a member."""
        for member in cls:
            if member.number == number:
                return member
        raise ValueError(f"{number} is not a value of {cls.__name__}")

    def __lt__(self, other: str) -> bool:
        return self.number < type(self)(other).number

    def __le__(self, other: str) -> bool:
        return self.number <= type(self)(other).number

    def __gt__(self, other: str) -> bool:
        return self.number > type(self)(other).number

    def __ge__(self, other: str) -> bool:
        return self.number >= type(self)(other).number
