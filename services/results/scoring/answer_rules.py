"""Metrics that read an answer by a rule of their own: a pattern, a number, an expression, a choice."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from proctor.values.judging.scale import scale_of_options
from proctor.values.metrics.options import MAX_TEXT
from services.results.scoring.answer_marks import final_answer
from services.results.scoring.choices.options import options_of
from services.results.scoring.choices.reading import named_choice
from services.results.scoring.expressions.stated_expression import boxed_expression, stated_expression
from services.results.scoring.expressions.written_form import WrittenExpression, written_expression
from services.results.scoring.instructions.followed import FollowedInstructions
from services.results.scoring.numbers.stated_number import stated_number
from services.results.scoring.numbers.written_numbers import WrittenNumber
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.stated_verdict import StatedPreference, StatedVerdict
from services.results.scoring.timed_regex import SlowTime, TimedRegex

_WITHOUT_CASE = "(?i)"
# A whole number, so that fractions stay exact.
_PER_CENT = 100
# Characters. The parser takes time by length, and no answer is as long.
MAX_EXPRESSION = 1000
LETTERS = tuple("ABCDEFGHIJ")
MetricOptions = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Judgement:
    """`prediction`: what the answer was taken for; None where nothing could be read, which is never right."""

    prediction: str | None
    is_right: bool = False


def shown_targets(targets: Sequence[str]) -> str:
    """The first ones, in a sentence."""
    return ", ".join(f"{text!r:.80}" for text in targets[:5]) or "(missing)"


@dataclass(frozen=True, slots=True)
class FoundText:
    """The pattern's first match in the answer, or its first group that is not empty, equals the target.

    Spaces at the ends are overlooked. Where nothing is found nothing is read.
    """

    pattern: TimedRegex
    ignore_case: bool = False

    def check(self, targets: Sequence[str]) -> None:
        """Whatever the targets are, they may be found."""

    def judge(self, answer: str, targets: Sequence[str]) -> Judgement:
        prediction = (self.pattern.first(answer) or "").strip()
        if not prediction:
            return Judgement(None)
        return Judgement(prediction, any(self._folded(prediction) == self._folded(text) for text in targets))

    def _folded(self, text: str) -> str:
        return text.strip().casefold() if self.ignore_case else text.strip()


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """The target is a pattern, which is found in the answer."""

    ignore_case: bool = False
    slow_time: SlowTime = field(default_factory=SlowTime, compare=False)

    def check(self, targets: Sequence[str]) -> None:
        self._patterns(targets)

    def judge(self, answer: str, targets: Sequence[str]) -> Judgement:
        patterns = self._patterns(targets)
        return Judgement(answer, any(pattern.first(answer) is not None for pattern in patterns))

    def _patterns(self, targets: Sequence[str]) -> Sequence[TimedRegex]:
        return [self._pattern(text) for text in targets]

    def _pattern(self, text: str) -> TimedRegex:
        # Compiling takes memory by length.
        if len(text) > MAX_TEXT:
            raise ScoringImpossible(
                f"the target has {len(text)} characters, and a pattern at most {MAX_TEXT}"
            )
        try:
            return case_pattern(text, ignore_case=self.ignore_case, slow_time=self.slow_time)
        except re.error as error:
            raise ScoringImpossible(
                f"the target {text!r:.200} is not a regular expression: {error}"
            ) from error


def case_pattern(text: str, *, ignore_case: bool, slow_time: SlowTime | None) -> TimedRegex:
    """Raises re.error."""
    return TimedRegex((_WITHOUT_CASE if ignore_case else "") + text, slow_time)


@dataclass(frozen=True, slots=True)
class SameNumber:
    """The number that the answer states is the target's, or within one of the tolerances of it.

    Computed exactly: 0.1 is a tenth. Where one of the two has a percent sign, it may stand for a hundredth or
    for nothing: 80 % is 80, and 0.8.
    """

    tolerance: Fraction = Fraction(0)
    relative_tolerance: Fraction = Fraction(0)

    def check(self, targets: Sequence[str]) -> None:
        _numbers_of(targets)

    def judge(self, answer: str, targets: Sequence[str], *, is_cut: bool = False) -> Judgement:
        numbers = _numbers_of(targets)
        final = final_answer(answer)
        # Where more followed the answer it was not cut itself.
        named = stated_number(final, is_cut=is_cut and answer.rstrip().endswith(final))
        if named is None:
            return Judgement(None)
        return Judgement(named.text, any(self._is_near(named, number) for number in numbers))

    def _is_near(self, named: WrittenNumber, target: WrittenNumber) -> bool:
        if named.value == target.value:
            return True
        if not (self.tolerance or self.relative_tolerance or named.is_percent or target.is_percent):
            return False
        pairs = [(named.value, target.value)]
        if named.is_percent and not target.is_percent:
            pairs.append((named.value / _PER_CENT, target.value))
        if target.is_percent and not named.is_percent:
            pairs.append((named.value, target.value / _PER_CENT))
        return any(
            abs(one - other) <= max(self.tolerance, self.relative_tolerance * abs(other))
            for one, other in pairs
        )


def _numbers_of(targets: Sequence[str]) -> Sequence[WrittenNumber]:
    numbers = [number for text in targets if (number := stated_number(text)) is not None]
    if not numbers:
        raise ScoringImpossible(f"the target {shown_targets(targets)} names no number")
    return numbers


@dataclass(frozen=True, slots=True)
class SameExpression:
    """The expression that the answer states is equal to the target's, by the field's library."""

    def check(self, targets: Sequence[str]) -> None:
        """Without the library, which takes a second to load: whether there is a target."""
        if not any(text.strip() for text in targets):
            raise ScoringImpossible(f"the target {shown_targets(targets)} names no expression")

    def judge(self, answer: str, targets: Sequence[str], *, is_cut: bool = False) -> Judgement:
        self.check(targets)
        final = final_answer(answer)
        stated = stated_expression(final, is_cut=is_cut and answer.rstrip().endswith(final))
        if stated is None or len(stated.text) > MAX_EXPRESSION:
            return Judgement(None)
        from services.results.scoring.expressions.equal_expressions import (  # noqa: PLC0415  # slow
            are_equal,
            can_be_read,
        )

        given, wanted = written_expression(stated.text), [*map(_expression_of, targets)]
        if any(are_equal(target, given) for target in wanted):
            return Judgement(stated.text, is_right=True)
        if not stated.is_formula or not can_be_read(given):
            return Judgement(None)
        if not any(map(can_be_read, wanted)):
            raise ScoringImpossible(f"the target {shown_targets(targets)} is no expression that can be read")
        return Judgement(stated.text)


def _expression_of(target: str) -> WrittenExpression:
    return written_expression(boxed_expression(target) or target)


@dataclass(frozen=True, slots=True)
class SettledChoice:
    """An answer and a target name a choice by its text or by its letter, the first one being A.

    `is_cut` of an answer: the model had no more tokens.
    """

    choices: tuple[str, ...] = LETTERS

    def check(self, targets: Sequence[str]) -> None:
        self._right_labels(targets)

    def judge(self, answer: str, targets: Sequence[str], *, is_cut: bool = False) -> Judgement:
        right = self._right_labels(targets)
        label = named_choice(answer, self.choices, is_cut=is_cut)
        return Judgement(None) if label is None else Judgement(self.choices[label], label in right)

    def _right_labels(self, targets: Sequence[str]) -> frozenset[int]:
        right = frozenset(self._labels(targets))
        if not right:
            raise ScoringImpossible(
                f"the target {shown_targets(targets)} is none of the choices {', '.join(self.choices):.200}"
            )
        return right

    def _labels(self, targets: Sequence[str]) -> Iterator[int]:
        stripped, options = [choice.strip() for choice in self.choices], options_of(self.choices)
        for text in targets:
            label = options.being(text) if options and text.strip() not in stripped else None
            # The text of a choice goes before its letter: a choice may be called "B".
            if text.strip() in stripped:
                yield stripped.index(text.strip())
            elif label is not None:
                yield label


# `judge` compares an answer with several texts; one match is enough. `check` raises ScoringImpossible for a
# target with which `judge` would raise it for every answer. A verdict is read, and compared with nothing;
# instructions are followed one by one.
ComparingRule = FoundText | FoundTarget | SameNumber | SameExpression | SettledChoice
AnswerRule = ComparingRule | StatedVerdict | StatedPreference | FollowedInstructions


def read_rule(name: str, options: MetricOptions, slow_time: SlowTime) -> AnswerRule | None:
    """None for a metric that has no rule. Raises ValueError, TypeError and re.error."""
    read = RULE_READERS.get(name)
    return read(options, slow_time) if read else None


def _regex(options: MetricOptions, slow_time: SlowTime) -> AnswerRule:
    pattern, ignore_case = options.get("pattern"), options.get("ignore_case", False)
    if not isinstance(ignore_case, bool) or not isinstance(pattern, str | None):
        raise TypeError("pattern must be a text, and ignore_case true or false")
    if pattern is None:
        return FoundTarget(ignore_case, slow_time)
    return FoundText(case_pattern(pattern, ignore_case=ignore_case, slow_time=slow_time), ignore_case)


def _numeric(options: MetricOptions, _: SlowTime) -> AnswerRule:
    return SameNumber(_number(options, "tolerance"), _number(options, "relative_tolerance"))


def _math(_: MetricOptions, __: SlowTime) -> AnswerRule:
    return SameExpression()


def _number(options: MetricOptions, name: str) -> Fraction:
    value = options.get(name, 0)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number from 0")
    # By how it is written: 0.1 is a tenth.
    return Fraction(str(value))


def _choice(options: MetricOptions, _: SlowTime) -> AnswerRule:
    choices = options.get("choices", LETTERS)
    if isinstance(choices, list | tuple) and all(isinstance(one, str) and one.strip() for one in choices):
        return SettledChoice(tuple(choices))
    raise ValueError("choices must be a list of texts")


def _verdict(options: MetricOptions, _: SlowTime) -> AnswerRule:
    return StatedVerdict(scale_of_options(options))


def _preference(_: MetricOptions, __: SlowTime) -> AnswerRule:
    return StatedPreference()


def _strictly(_: MetricOptions, slow_time: SlowTime) -> AnswerRule:
    return FollowedInstructions(is_loose=False, slow_time=slow_time)


def _loosely(_: MetricOptions, slow_time: SlowTime) -> AnswerRule:
    return FollowedInstructions(is_loose=True, slow_time=slow_time)


RULE_READERS: Mapping[str, Callable[[MetricOptions, SlowTime], AnswerRule]] = {
    "regex": _regex,
    "numeric": _numeric,
    "math": _math,
    "choice": _choice,
    "verdict": _verdict,
    "preference": _preference,
    "prompt_level_strict_acc": _strictly,
    "prompt_level_loose_acc": _loosely,
    "inst_level_strict_acc": _strictly,
    "inst_level_loose_acc": _loosely,
}
