"""Limits of one template rendering: steps, characters, integer size, and time in regular expressions."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

import regex
from jinja2.utils import Namespace

from services.common.pattern_size import check_pattern_size

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


Growth = Callable[..., int]

_FORMAT_SPEC = re.compile(r"%(?:\([^()]*\))?[#0 +-]*(\*|\d+)?(?:\.(\*|\d+))?")
_MAX_WIDTH_DIGITS = 15


def widths_of_format(text: str) -> int:
    """All widths and precisions of a `%` format together."""
    specs = _FORMAT_SPEC.finditer(text)
    return widths_together([width for spec in specs for width in spec.groups() if width is not None])


def widths_together(widths: Iterable[str]) -> int:
    """Their sum; of a number that is far too large, its first digits."""
    widths = list(widths)
    if "*" in widths:
        raise TypeError("a format takes its width from a value ('*')")
    return sum(int(width[:_MAX_WIDTH_DIGITS]) for width in widths)


def _replaced(text: object, old: str, new: str, *_: object, **__: object) -> int:
    return str(text).count(old) * len(new)


def _joined(parts: Sized, delimiter: object = "", *_: object, **__: object) -> int:
    return len(parts) * len(str(delimiter))


def _width(_: object, width: int = 80, *__: object) -> int:
    return width


def _indented(text: str, width: int | str = 4, *_: object, **__: object) -> int:
    return (text.count("\n") + 1) * (len(width) if isinstance(width, str) else width)


def _rounded(_: object, precision: int = 0, *__: object, **___: object) -> int:
    """By its powers of ten, where it rounds up or down."""
    return precision**2


def _summed(items: Sized, attribute: object = None, start: object = 0) -> int:
    """Lists are copied for each that is added to them."""
    del attribute
    return 0 if isinstance(start, int | float) else len(items) ** 2


OF_METHODS: Mapping[str, Growth] = {
    "replace": _replaced,
    "join": lambda delimiter, parts: _joined(parts, delimiter),
    "center": _width,
    "ljust": _width,
    "rjust": _width,
    "zfill": _width,
}
OF_FILTERS: Mapping[str, Growth] = {
    "replace": _replaced,
    "join": _joined,
    "center": _width,
    "indent": _indented,
    "batch": _width,
    "slice": _width,
    "round": _rounded,
    "sum": _summed,
    "tojson": lambda _: 0,  # no `indent`, which multiplies what is nested
}


"""Of what has no entry, the result is never much larger than what was given."""


def regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """The filter of lm-evaluation-harness. Raises re.error where `re` would not read it, and regex.error."""
    check_pattern_size(pattern)
    budget = BUDGET.get()
    started = monotonic()
    try:
        return regex.sub(
            pattern,
            lambda match: _expanded(match, replacement, budget),
            text,
            count=count,
            flags=regex.VERSION0,
            timeout=budget.regex_seconds,
        )
    except TimeoutError as error:
        raise OverBudget(f"its regular expressions take more than {MAX_REGEX_SECONDS:g} s") from error
    finally:
        budget.regex_seconds = max(budget.regex_seconds - (monotonic() - started), 0.0)


def _expanded(match: "regex.Match[str]", replacement: str, budget: Budget) -> str:
    """Each backslash may stand for the longest group."""
    references = replacement.count("\\")
    longest = max(len(group or "") for group in (match.group(), *match.groups())) if references else 0
    budget.write(len(replacement) + references * longest)
    return match.expand(replacement) if references else replacement
