"""Filters an answer's text to the part that is compared with the target; None: the answer could not be read.

The names and options are those of lm-evaluation-harness's filters, except for `first_line`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, takewhile

from services.results.scoring.filters.choice_filter import ChoiceFilter
from services.results.scoring.filters.entity_filters import NO_TAGS, part_of_speech_tags, written_entities
from services.results.scoring.score import Vote
from services.results.scoring.timed_regex import TimedRegex

# The last step of a pipeline. It needs all rollouts of a sample, so it is applied with the figures, and so is
# the number of rollouts that vote.
MAJORITY_VOTE = "majority_vote"
TAKE_FIRST_K = "take_first_k"
MAP = "map"
FALLBACK = "[invalid]"
_TAKE_FIRST = "take_first"
_TAGS = "regex_pos"
# They leave a part of the text, or all of it.
_PARTS = frozenset({"regex", "first_line", "remove_whitespace", _TAKE_FIRST})
# Those that read a text once, but may make it longer or another.
_WHOLE = frozenset({"lowercase", "uppercase", "map"})
_QUICK_STEPS = 8
_QUICK_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class FilterStep:
    """One of FILTERS, with the options of `regex` and `multi_choice_regex`, and of `map`.

    What is not found is unread: only Python code of a task gets lm-evaluation-harness's `fallback`. `code`
    names the code of the task that is the step, `path:name`, with its `code_options`.
    """

    function: str
    regex: TimedRegex | None = None
    group_select: int = 0
    fallback: str = FALLBACK
    choices: ChoiceFilter | None = None
    mapping: Mapping[str, object] = field(default_factory=dict, hash=False)
    default: object = None
    code: str = ""
    code_options: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class FilterPipeline:
    """`vote`: of the rollouts of a sample the most frequent prediction counts."""

    name: str = "none"
    steps: tuple[FilterStep, ...] = ()
    vote: Vote | None = None

    @property
    def is_majority(self) -> bool:
        return self.vote is not None

    @property
    def quick_characters(self) -> float:
        """Any text of so many characters is filtered within some milliseconds."""
        if not self.steps:
            return math.inf
        patterns = [step.regex.quick_characters for step in self.steps if step.regex]
        quick = _PARTS if patterns else _PARTS | _WHOLE
        if len(self.steps) > _QUICK_STEPS or not {step.function for step in self.steps} <= quick:
            return 0
        return min(patterns, default=_QUICK_CHARACTERS)

    @property
    def coded_steps(self) -> tuple[FilterStep, ...]:
        """Those that are code of the task; they follow each other."""
        return tuple(step for step in self.steps if step.code)

    @property
    def before_code(self) -> "FilterPipeline":
        """What is applied to the answer that the code gets."""
        return replace(self, steps=tuple(takewhile(lambda step: not step.code, self.steps)))

    @property
    def after_code(self) -> "FilterPipeline":
        """What is applied to the text that the code leaves."""
        after = dropwhile(lambda step: not step.code, self.steps)
        return replace(self, steps=tuple(step for step in after if not step.code))

    @property
    def takes_one(self) -> bool:
        """Python code of a task gets the answer, and else a list of it, as in lm-evaluation-harness."""
        return not self.steps or self.is_majority or any(step.function == _TAKE_FIRST for step in self.steps)


def read_answer(pipeline: FilterPipeline, text: str, choices: Sequence[str] = ()) -> str | None:
    """None where a step finds nothing or only white space is left: no label ever takes an answer's place.

    `choices`: the texts of the sample's choices, where a filter looks for them.
    """
    for step in pipeline.steps:
        read = FILTERS[step.function](step, text, choices)
        if read is None:
            return None
        text = read
    return text if text.strip() else None


def read_rest(pipeline: FilterPipeline, left: object, choices: Sequence[str] = ()) -> str | None:
    """As `read_answer`, of what code left. Code that found nothing leaves no text, or its fallback."""
    fallbacks = {str(step.code_options.get("fallback", FALLBACK)) for step in pipeline.coded_steps}
    if not isinstance(left, str) or left in fallbacks:
        return None
    return read_answer(pipeline.after_code, left, choices)


def left_for_code(pipeline: FilterPipeline, left: object) -> object:
    """What code that scores gets of what code that filters left: as `text_for_code`."""
    if isinstance(left, str):
        return text_for_code(pipeline.after_code, left)
    return left if pipeline.takes_one else [left]


def text_for_code(pipeline: FilterPipeline, text: str, choices: Sequence[str] = ()) -> object:
    """As lm-evaluation-harness filters it: a text, a list of it, or of the tags of `regex_pos`."""
    for step in pipeline.steps:
        if step.function == _TAGS:
            return [part_of_speech_tags(text) or NO_TAGS]
        if step.function == MAP:
            mapped = step.mapping.get(text, step.default)
            if not isinstance(mapped, str):
                # A number stays one, and what is not mapped is null.
                return mapped if pipeline.takes_one else [mapped]
        read = FILTERS[step.function](step, text, choices)
        text = step.fallback if read is None else read
    return text if pipeline.takes_one else [text]


def _regex(step: FilterStep, text: str, _: Sequence[str]) -> str | None:
    """The `group_select`-th match (-1: the last); of its groups, the first that is not empty."""
    assert step.regex is not None
    return step.regex.selected(text, step.group_select) or None


def _multi_choice_regex(step: FilterStep, text: str, choices: Sequence[str]) -> str | None:
    assert step.regex is not None
    assert step.choices is not None
    found = step.regex.selected(text, step.group_select)
    return found or step.choices.letter(text, choices, step.group_select)


def _first_line(_: FilterStep, text: str, __: Sequence[str]) -> str:
    return text.strip().partition("\n")[0]


def _remove_whitespace(_: FilterStep, text: str, __: Sequence[str]) -> str:
    return text.strip()


def _lowercase(_: FilterStep, text: str, __: Sequence[str]) -> str:
    return text.lower()


def _uppercase(_: FilterStep, text: str, __: Sequence[str]) -> str:
    return text.upper()


def _take_first(_: FilterStep, text: str, __: Sequence[str]) -> str:
    """Takes the text: in lm-evaluation-harness the first of several answers.

    Here each answer is scored by itself.
    """
    return text


def _map(step: FilterStep, text: str, __: Sequence[str]) -> str | None:
    """The value of the text; of another one the default. Without one it is unread."""
    mapped = step.mapping.get(text, step.default)
    return None if mapped is None else str(mapped)


def _format_span(_: FilterStep, text: str, __: Sequence[str]) -> str:
    return written_entities(text)


def _regex_pos(_: FilterStep, text: str, __: Sequence[str]) -> str | None:
    return " ".join(part_of_speech_tags(text)) or None


FILTERS: Mapping[str, Callable[[FilterStep, str, Sequence[str]], str | None]] = {
    "regex": _regex,
    "multi_choice_regex": _multi_choice_regex,
    "first_line": _first_line,
    "remove_whitespace": _remove_whitespace,
    "lowercase": _lowercase,
    "uppercase": _uppercase,
    _TAKE_FIRST: _take_first,
    MAP: _map,
    "format_span": _format_span,
    _TAGS: _regex_pos,
}
