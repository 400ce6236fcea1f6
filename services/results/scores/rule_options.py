"""Options of the metrics that read answers in a way of their own, read into the rules that do it."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from services.results.scores.answer_rule import AnswerRule
from services.results.scores.choice_rule import LETTERS, SettledChoice
from services.results.scores.number_rule import SameNumber
from services.results.scores.regex_rule import FoundTarget, FoundText, case_pattern
from services.results.scores.timed_regex import SlowTime

Options = Mapping[str, object]

RULE_OPTIONS: Mapping[str, frozenset[str]] = {
    "regex": frozenset({"pattern", "ignore_case"}),
    "numeric": frozenset({"tolerance", "relative_tolerance"}),
    "choice": frozenset({"choices"}),
}
RULE_METRICS = frozenset(RULE_OPTIONS)


def read_rule(name: str, options: Options, slow_time: SlowTime) -> AnswerRule | None:
    """None for a metric that has no rule. Raises ValueError, TypeError and re.error."""
    read = _READERS.get(name)
    return read(options, slow_time) if read else None


def _regex(options: Options, slow_time: SlowTime) -> AnswerRule:
    pattern, ignore_case = options.get("pattern"), options.get("ignore_case", False)
    if not isinstance(ignore_case, bool) or not isinstance(pattern, str | None):
        raise TypeError("pattern must be a text, and ignore_case true or false")
    if pattern is None:
        return FoundTarget(ignore_case, slow_time)
    return FoundText(case_pattern(pattern, ignore_case=ignore_case, slow_time=slow_time), ignore_case)


def _numeric(options: Options, _: SlowTime) -> AnswerRule:
    return SameNumber(_number(options, "tolerance"), _number(options, "relative_tolerance"))


def _number(options: Options, name: str) -> Fraction:
    value = options.get(name, 0)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number from 0")
    # By how it is written: 0.1 is a tenth.
    return Fraction(str(value))


def _choice(options: Options, _: SlowTime) -> AnswerRule:
    choices = options.get("choices", LETTERS)
    if isinstance(choices, list | tuple) and all(isinstance(one, str) and one.strip() for one in choices):
        return SettledChoice(tuple(choices))
    raise ValueError("choices must be a list of texts")


_READERS: Mapping[str, Callable[[Options, SlowTime], AnswerRule]] = {
    "regex": _regex,
    "numeric": _numeric,
    "choice": _choice,
}
