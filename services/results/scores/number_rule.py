"""Right or wrong by the number that an answer ends up with."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from services.results.scores.answer import ScoringImpossible
from services.results.scores.answer_rule import Judgement, shown_targets
from services.results.scores.final_answer import final_answer
from services.results.scores.last_number import WrittenNumber, last_number

_PER_CENT = 100


@dataclass(frozen=True, slots=True)
class SameNumber:
    """The answer's last number is the target's, or no farther from it than one of the tolerances allows.

    Reckoned exactly: 0.1 is a tenth. Where one of the two has a percent sign, it may stand for a hundredth or
    for nothing: 80 % is 80, and 0.8.
    """

    tolerance: Fraction = Fraction(0)
    relative_tolerance: Fraction = Fraction(0)

    def check(self, expected: Sequence[str]) -> None:
        _numbers_of(expected)

    def judge(self, answer: str, expected: Sequence[str]) -> Judgement:
        targets = _numbers_of(expected)
        named = last_number(final_answer(answer))
        if named is None:
            return Judgement(None)
        return Judgement(named.text, any(self._is_near(named, target) for target in targets))

    def _is_near(self, named: WrittenNumber, target: WrittenNumber) -> bool:
        pairs = [(named.value, target.value)]
        if named.is_percent and not target.is_percent:
            pairs.append((named.value / _PER_CENT, target.value))
        if target.is_percent and not named.is_percent:
            pairs.append((named.value, target.value / _PER_CENT))
        return any(
            abs(one - other) <= max(self.tolerance, self.relative_tolerance * abs(other))
            for one, other in pairs
        )


def _numbers_of(expected: Sequence[str]) -> Sequence[WrittenNumber]:
    numbers = [number for text in expected if (number := last_number(text)) is not None]
    if not numbers:
        raise ScoringImpossible(f"the target {shown_targets(expected)} names no number")
    return numbers
