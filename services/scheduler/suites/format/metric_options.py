"""What an option of a metric may be, as suites/task.schema.json has it; a test holds the two together."""

import math
import re
from collections.abc import Callable, Mapping

from services.scheduler.suites.format.suite_validator import check_regex

LONGEST_TEXT = 5000
FEWEST_CHOICES, MOST_CHOICES = 2, 1000


def option_problem(option: str, value: object) -> str:
    """What is wrong with the value of an option that some metric has; "" for nothing."""
    return _CHECKS[option](value)


def _switch(value: object) -> str:
    return "" if isinstance(value, bool) else f"{value!r:.60} is neither true nor false"


def _regexes(value: object) -> str:
    if not isinstance(value, list):
        return f"{value!r:.60} is no list of patterns"
    return next((problem for one in value if (problem := _regex(one))), "")


def _pattern(value: object) -> str:
    return _text(value) or _regex(value)


def _regex(value: object) -> str:
    if not isinstance(value, str):
        return f"{value!r:.60} is no text"
    try:
        check_regex(value)
    except re.error as error:
        return f"{value!r:.60} is no regular expression: {error}"
    return ""


def _tolerance(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    return "" if is_number else f"{value!r:.60} is no number from 0"


def _choices(value: object) -> str:
    if not isinstance(value, list):
        return f"{value!r:.60} is no list of texts"
    if not FEWEST_CHOICES <= len(value) <= MOST_CHOICES:
        return f"there are {len(value)}, and must be {FEWEST_CHOICES} to {MOST_CHOICES}"
    problem = next((problem for one in value if (problem := _text(one))), "")
    bare = [str(one).strip().casefold() for one in value]
    if not problem and ("" in bare or len(set(bare)) < len(bare)):
        return "each needs letters that no other one has, whatever their case"
    return problem


def _text(value: object) -> str:
    if not isinstance(value, str):
        return f"{value!r:.60} is no text"
    if not value:
        return "it is empty"
    is_long = len(value) > LONGEST_TEXT
    return f"it has {len(value)} letters, and may have {LONGEST_TEXT}" if is_long else ""


def _average(value: object) -> str:
    known = ("binary", "macro", "micro", "weighted")
    return "" if value in known else f"{value!r:.60} is none of {', '.join(known)}"


_CHECKS: Mapping[str, Callable[[object], str]] = {
    "ignore_case": _switch,
    "ignore_punctuation": _switch,
    "ignore_numbers": _switch,
    "regexes_to_ignore": _regexes,
    "average": _average,
    "pattern": _pattern,
    "tolerance": _tolerance,
    "relative_tolerance": _tolerance,
    "choices": _choices,
}
