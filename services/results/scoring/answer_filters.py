"""Filters an answer's text to the part that is compared with the target; None: the answer could not be read.

The names and options are those of lm-evaluation-harness's filters, except for `first_line`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.results.scoring.timed_regex import TimedRegex

# The last step of a pipeline. It needs all rollouts of a sample, so it is applied with the figures.
MAJORITY_VOTE = "majority_vote"
FALLBACK = "[invalid]"


@dataclass(frozen=True, slots=True)
class FilterStep:
    """One of FILTERS, with the options of `regex`.

    What is not found is unread: only Python code of a task gets lm-evaluation-harness's `fallback`.
    """

    function: str
    regex: TimedRegex | None = None
    group_select: int = 0
    fallback: str = FALLBACK


@dataclass(frozen=True, slots=True)
class FilterPipeline:
    """`is_majority`: of the rollouts of a sample the most frequent prediction counts."""

    name: str = "none"
    steps: tuple[FilterStep, ...] = ()
    is_majority: bool = False


def read_answer(pipeline: FilterPipeline, text: str) -> str | None:
    """None where a step finds nothing or only white space is left: no label ever takes an answer's place."""
    for step in pipeline.steps:
        read = FILTERS[step.function](step, text)
        if read is None:
            return None
        text = read
    return text if text.strip() else None


def text_for_code(pipeline: FilterPipeline, text: str) -> str:
    """As lm-evaluation-harness filters it."""
    for step in pipeline.steps:
        read = FILTERS[step.function](step, text)
        text = step.fallback if read is None else read
    return text


def _regex(step: FilterStep, text: str) -> str | None:
    """The `group_select`-th match (-1: the last); of its groups, the first that is not empty."""
    assert step.regex is not None
    matches = step.regex.findall(text)
    # lm-evaluation-harness puts its fallback here; an unread answer must not pass for a read one.
    if not -len(matches) <= step.group_select < len(matches):
        return None
    match = matches[step.group_select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), "")
    return match.strip() or None


def _first_line(_: FilterStep, text: str) -> str:
    return text.strip().partition("\n")[0]


def _remove_whitespace(_: FilterStep, text: str) -> str:
    return text.strip()


def _lowercase(_: FilterStep, text: str) -> str:
    return text.lower()


def _uppercase(_: FilterStep, text: str) -> str:
    return text.upper()


def _take_first(_: FilterStep, text: str) -> str:
    """Takes the text: in lm-evaluation-harness the first of several answers.

    Here each answer is scored by itself.
    """
    return text


FILTERS: Mapping[str, Callable[[FilterStep, str], str | None]] = {
    "regex": _regex,
    "first_line": _first_line,
    "remove_whitespace": _remove_whitespace,
    "lowercase": _lowercase,
    "uppercase": _uppercase,
    "take_first": _take_first,
}
