"""What one rendering of a template may take: steps, characters, and time in regular expressions."""

from collections.abc import Iterable, Iterator, Mapping, Set, Sized, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass

from jinja2.utils import Namespace

MAX_STEPS = 1_000_000
MAX_CHARACTERS = 32 * 1024 * 1024
MAX_REGEX_SECONDS = 1.0
MAX_INTEGER_BITS = 10_000


class OverBudget(Exception):
    """A rendering takes more than it may; the message says more than what."""


@dataclass(slots=True)
class Budget:
    """What is left. A step is a part of the template that is evaluated again, or an item looked at."""

    steps: int = MAX_STEPS
    characters: int = MAX_CHARACTERS
    regex_seconds: float = MAX_REGEX_SECONDS

    def step(self, count: int = 1) -> None:
        """A count below 0, which a template may bring about, gives nothing back."""
        self.steps -= max(count, 0)
        if self.steps < 0:
            raise OverBudget(f"it takes more than {MAX_STEPS:,} steps")

    def write(self, characters: int) -> None:
        """Text that is made or read."""
        self.characters -= max(characters, 0)
        if self.characters < 0:
            raise OverBudget(f"it handles more than {MAX_CHARACTERS:,} characters")

    def take(self, value: object) -> int:
        """A value is worked on: all of its items and characters count, each as often as it occurs in it.

        Gives the number of characters.
        """
        if type(value) is str:
            self.write(len(value))
            return len(value)
        before = self.characters
        waiting = [value]
        while waiting:
            self.step()
            waiting.extend(self._items(waiting.pop()))
        return before - self.characters

    def _items(self, value: object) -> Iterable[object]:
        if isinstance(value, str | bytes):
            self.write(len(value))
        elif isinstance(value, int):
            bound_bits(value.bit_length())
        elif isinstance(value, range):
            self.step(len(value))
        elif isinstance(value, Mapping):
            self.step(len(value))
            return (*value, *value.values())
        elif isinstance(value, list | tuple | Set | ValuesView):
            self.step(len(value))
            return value
        elif isinstance(value, Namespace):
            raise TypeError("of a namespace only its fields can be used")
        return ()

    def repeat(self, times: int, cost: "Cost") -> None:
        self.step(times * cost.steps)
        self.write(times * cost.characters)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a part of a template takes each time that it is evaluated, beside the values it works on."""

    steps: int
    characters: int = 0


def looped(items: Iterable[object], cost: Cost) -> Iterable[object]:
    """`items`, each of which costs the same: at once where it is known how many there are."""
    if not isinstance(items, Sized):
        return _counted(items, cost)
    BUDGET.get().repeat(len(items), cost)
    return items


def _counted(items: Iterable[object], cost: Cost) -> Iterator[object]:
    budget = BUDGET.get()
    for item in items:
        budget.repeat(1, cost)
        yield item


def bound_bits(bits: int) -> None:
    """Whole numbers grow without end, and the time to reckon with them."""
    if bits > MAX_INTEGER_BITS:
        raise OverBudget(f"it reckons with whole numbers of more than {MAX_INTEGER_BITS:,} bits")


BUDGET: ContextVar[Budget] = ContextVar("budget of a rendering")
"""Of the rendering that runs in this thread: filters and methods of templates are called without it."""
