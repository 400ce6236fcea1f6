"""How many characters (or items) a method, filter or operator may make, told before it makes them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sized

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
