"""The part of a long list that one page shows: so many items, and so many characters in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most of one page. One item is shown however long it is."""

    items: int
    characters: int


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Item]):
    """`shown` are some of `total` items, `first` the number of the first of them, from 1."""

    shown: Sequence[Item]
    first: int
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.shown) - 1

    @property
    def following(self) -> int | None:
        """The number of the first item of the next page."""
        return self.last + 1 if self.last < self.total else None

    @property
    def ending(self) -> int:
        """The number of the first of the last items, as many as this page has."""
        return max(1, self.total - len(self.shown) + 1)

    @property
    def is_part(self) -> bool:
        return len(self.shown) < self.total


def excerpt(
    items: Sequence[Item], first: int, length: Callable[[Item], int], bounds: Bounds
) -> Excerpt[Item]:
    """The page that begins at the item with the number `first`, or at the nearest that there is.

    `length` gives the characters of an item.
    """
    begun = max(1, min(first, len(items)))
    page = items[begun - 1 : begun - 1 + bounds.items]
    fitting = sum(total <= bounds.characters for total in accumulate(map(length, page)))
    return Excerpt(page[: max(1, fitting)], begun, len(items))
