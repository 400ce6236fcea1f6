"""Limits of one template rendering: steps, characters, integer size, and time in regular expressions."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

import regex
from jinja2.utils import Namespace

from services.common.patterns import compile_pattern
from services.scheduler.suites.templates.errors import OverBudget

# Some seconds of a rendering; real templates take hundreds of steps.
MAX_STEPS = 1_000_000
# Eight times the largest sample, since a template handles parts of it several times.
MAX_CHARACTERS = 32 * 1024 * 1024
MAX_REGEX_SECONDS = 1.0
# One multiplication is one step, and of large numbers takes minutes.
MAX_INTEGER_BITS = 10_000

# How many characters (or items) a call may create, computed from its arguments before the call.
Growth = Callable[..., int]
_FORMAT_SPEC = re.compile(r"%(?:\([^()]*\))?[#0 +-]*(\*|\d+)?(?:\.(\*|\d+))?")
_MAX_WIDTH_DIGITS = 15


@dataclass(slots=True)
class RenderingBudget:
    """Steps that a rendering has left. Each evaluation of a template part and each item visited is a step."""

    steps: int = MAX_STEPS
    characters: int = MAX_CHARACTERS
    regex_seconds: float = MAX_REGEX_SECONDS

    def charge_steps(self, count: int = 1) -> None:
        """Uses up steps. Templates can cause negative counts; these refund nothing."""
        self.steps -= max(count, 0)
        if self.steps < 0:
            raise OverBudget(f"it takes more than {MAX_STEPS:,} steps")

    def charge_characters(self, characters: int) -> None:
        """Uses up characters, for text that is created or read."""
        self.characters -= max(characters, 0)
        if self.characters < 0:
            raise OverBudget(f"it handles more than {MAX_CHARACTERS:,} characters")

    def charge(self, value: object) -> int:
        """Counts all nested items and characters of a value, repeated ones again. Returns its characters."""
        if type(value) is str:
            self.charge_characters(len(value))
            return len(value)
        before = self.characters
        waiting = [value]
        while waiting:
            self.charge_steps()
            waiting.extend(self._items(waiting.pop()))
        return before - self.characters

    def _items(self, value: object) -> Iterable[object]:
        if isinstance(value, str | bytes):
            self.charge_characters(len(value))
        elif isinstance(value, int):
            check_bits(value.bit_length())
        elif isinstance(value, range):
            self.charge_steps(len(value))
        elif isinstance(value, Mapping):
            self.charge_steps(len(value))
            return (*value, *value.values())
        elif isinstance(value, list | tuple | Set | ValuesView):
            self.charge_steps(len(value))
            return value
        elif isinstance(value, Namespace):
            raise TypeError("of a namespace only its fields can be used")
        return ()

    def charge_times(self, times: int, cost: "Cost") -> None:
        self.charge_steps(times * cost.steps)
        self.charge_characters(times * cost.characters)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one evaluation of a template part, without the values it processes."""

    steps: int
    characters: int = 0


def charged_per_item(items: Iterable[object], cost: Cost) -> Iterable[object]:
    """Returns `items` and charges `cost` for each: up front if their number is known, else one by one."""
    if not isinstance(items, Sized):
        return _counted(items, cost)
    BUDGET.get().charge_times(len(items), cost)
    return items


def _counted(items: Iterable[object], cost: Cost) -> Iterator[object]:
    budget = BUDGET.get()
    for item in items:
        budget.charge_times(1, cost)
        yield item


def check_bits(bits: int) -> None:
    """Raises `OverBudget` for integers so large that arithmetic with them takes long."""
    if bits > MAX_INTEGER_BITS:
        raise OverBudget(f"it computes with whole numbers of more than {MAX_INTEGER_BITS:,} bits")


# That of the rendering in this thread. A context variable, because Jinja calls filters without it.
BUDGET: ContextVar[RenderingBudget] = ContextVar("budget of a rendering")


def widths_of_format(text: str) -> int:
    """Sum of all widths and precisions of a `%` format."""
    specs = _FORMAT_SPEC.finditer(text)
    return widths_together([width for spec in specs for width in spec.groups() if width is not None])


def widths_together(widths: Iterable[str]) -> int:
    """Sum of the widths; only the first digits of an absurdly long number are read."""
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
    """`ceil` and `floor` compute with powers of ten."""
    return precision**2


def _summed(items: Sized, attribute: object = None, start: object = 0) -> int:
    """Adding lists copies the sum each time."""
    del attribute
    return 0 if isinstance(start, int | float) else len(items) ** 2


# Methods and filters without an entry create little more than they are given.
METHOD_GROWTH: Mapping[str, Growth] = {
    "replace": _replaced,
    "join": lambda delimiter, parts: _joined(parts, delimiter),
    "center": _width,
    "ljust": _width,
    "rjust": _width,
    "zfill": _width,
}
FILTER_GROWTH: Mapping[str, Growth] = {
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


def regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """The filter of lm-evaluation-harness, with a time limit. Raises re.error and regex.error."""
    _, timed = compile_pattern(pattern)
    budget = BUDGET.get()
    started = monotonic()
    try:
        return timed.sub(
            lambda match: _expanded(match, replacement, budget),
            text,
            count=count,
            timeout=budget.regex_seconds,
        )
    except TimeoutError as error:
        raise OverBudget(f"its regular expressions take more than {MAX_REGEX_SECONDS:g} s") from error
    finally:
        budget.regex_seconds = max(budget.regex_seconds - (monotonic() - started), 0.0)


def _expanded(match: "regex.Match[str]", replacement: str, budget: RenderingBudget) -> str:
    """Expands a match; each backslash may insert the longest group."""
    references = replacement.count("\\")
    longest = max(len(group or "") for group in (match.group(), *match.groups())) if references else 0
    budget.charge_characters(len(replacement) + references * longest)
    return match.expand(replacement) if references else replacement
