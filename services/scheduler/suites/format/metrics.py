"""The metrics: which output each scores, how it is aggregated, and which options it takes."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proctor.values.scoring import OutputType
from services.scheduler.suites.format.schema import check_regex

_CHOICE = frozenset({OutputType.MULTIPLE_CHOICE})
_TEXT = frozenset({OutputType.GENERATE_UNTIL})
_BOTH = _CHOICE | _TEXT


@dataclass(frozen=True, slots=True)
class Metric:
    """`aggregation` is the name in lm-evaluation-harness. Higher is better for every metric.

    `needs`: a key that the task must have. `is_single_label`: undefined if several choices are right.
    """

    output_types: frozenset[OutputType]
    aggregation: str = "mean"
    options: frozenset[str] = frozenset()
    needs: Mapping[OutputType, str] | None = None
    is_single_label: bool = False

    def required_key(self, output_type: OutputType) -> str:
        return (self.needs or {}).get(output_type, "")


_MATCH_OPTIONS = frozenset({"ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore"})
_OVER_ANSWERS = {OutputType.MULTIPLE_CHOICE: "doc_to_answers"}
_AGAINST_WRONG = {OutputType.GENERATE_UNTIL: "doc_to_wrong_target"}
_OVERLAPS = ("bleu", "rouge1", "rouge2", "rougeL")

METRICS: Mapping[str, Metric] = {
    "acc": Metric(_CHOICE),
    "acc_norm": Metric(_CHOICE),
    "acc_bytes": Metric(_CHOICE),
    "mc2": Metric(_CHOICE),
    "f1": Metric(_CHOICE, "f1", frozenset({"average"}), is_single_label=True),
    "mcc": Metric(_CHOICE, "matthews_corrcoef", is_single_label=True),
    "exact_match": Metric(_BOTH, options=_MATCH_OPTIONS),
    "contains": Metric(_TEXT, options=_MATCH_OPTIONS),
    "regex": Metric(_TEXT, options=frozenset({"pattern", "ignore_case"})),
    "numeric": Metric(_TEXT, options=frozenset({"tolerance", "relative_tolerance"})),
    "choice": Metric(_TEXT, options=frozenset({"choices"})),
    "squad_em": Metric(_BOTH, needs=_OVER_ANSWERS),
    "squad_f1": Metric(_BOTH, needs=_OVER_ANSWERS),
    "pearson": Metric(_TEXT, "pearson"),
    "spearman": Metric(_TEXT, "spearman"),
    **{f"{overlap}_max": Metric(_TEXT) for overlap in _OVERLAPS},
    **{f"{overlap}_acc": Metric(_TEXT, needs=_AGAINST_WRONG) for overlap in _OVERLAPS},
    **{f"{overlap}_diff": Metric(_TEXT, needs=_AGAINST_WRONG) for overlap in _OVERLAPS},
}


def options_of(name: str, output_type: OutputType) -> frozenset[str]:
    """Options of text comparison do not apply to choices."""
    is_text_option = METRICS[name].options is _MATCH_OPTIONS
    return frozenset() if is_text_option and output_type not in _TEXT else METRICS[name].options


LONGEST_TEXT = 5000
FEWEST_CHOICES, MOST_CHOICES = 2, 1000


def option_problem(option: str, value: object) -> str:
    """Returns the problem of an option's value, "" if it is valid. Agrees with suites/task.schema.json."""
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
