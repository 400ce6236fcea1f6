"""The unit behind an expression, which is compared only where both sides have one that is known."""

import re

SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_POWER = r"(?:\^\s*\{?\s*\d\s*\}?)?\.?\s*$"
_IN_TEXT = re.compile(
    rf"(?<=[\d}})%\]a-z\s])\s*\\(?:text|mathrm|mbox|textrm|textbf)\s*\{{(?P<unit>[^{{}}]*)\}}\s*{_POWER}"
)
_IN_WORDS = re.compile(
    r"(?<=[\d}%])\s*(?P<unit>(?:square |cubic |sq\.? )?"
    r"(?:[A-Za-z]{3,}(?: per [a-z]+)?(?: [a-z]{2,})?|cm|mm|km|kg|ft|in|mi|hr|[ap]\.?m\.?|(?<=\s)[mgsh])"
    rf"(?:/[a-z]{{1,5}})?){_POWER}"
)
_NO_UNITS = frozenset(
    {"and", "or", "dots", "pi", "theta", "infty", "infinity", "sqrt", "sin", "cos", "tan", "mod"}
)
_NAMES = {
    "cm": "centimeter centimetre",
    "mm": "millimeter millimetre",
    "km": "kilometer kilometre",
    "m": "meter metre",
    "in": "inch inche",
    "ft": "foot feet",
    "mi": "mile",
    "kg": "kilogram",
    "g": "gram",
    "s": "second sec",
    "min": "minute",
    "h": "hour hr",
    "day": "day",
    "am": "am",
    "pm": "pm",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in (unit, *names.split())}


def known_unit(unit: str) -> str:
    """One name for "centimeter" and "cm"; empty for a unit that is not known, which says nothing."""
    return _UNITS.get(unit, "")


def without_unit(latex: str) -> tuple[str, str]:
    """The expression, and the word behind it: a unit without its plural, or a scale."""
    found = _IN_TEXT.search(latex) or _IN_WORDS.search(latex)
    if not found:
        return latex, ""
    unit = found["unit"].strip().lower().replace(".", "").replace("\\", "")
    if unit in _NO_UNITS or not latex[: found.start()].strip():
        return latex, ""
    scale = unit.split(" ")[0]
    return latex[: found.start()].strip(), scale if scale in SCALES else unit.removesuffix("s") or unit
