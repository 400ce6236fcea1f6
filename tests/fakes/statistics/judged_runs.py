"""Runs of made-up models before made-up judges, whose true figure is known."""

from dataclasses import dataclass

import numpy as np

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.judged.judged_scores import JudgedScores


@dataclass(frozen=True, slots=True)
class Judge:
    """How often right answers are judged wrong, and wrong ones right.

    `position_bias`: how often the two orders of a pair disagree, which makes a tie.
    """

    misses: float
    false_alarms: float
    position_bias: float = 0.0

    def verdicts(self, generator: np.random.Generator, right: Array) -> Array:
        is_wrong = generator.random(len(right)) < np.where(right > 0, self.misses, self.false_alarms)
        is_tie = generator.random(len(right)) < self.position_bias
        return np.where(is_tie, 0.5, np.abs(right - is_wrong))


def drawn_judge(generator: np.random.Generator, *, has_position_bias: bool) -> Judge:
    """Errors of 10 to 30 % of either kind."""
    misses, false_alarms = generator.uniform(0.1, 0.3, 2)
    return Judge(misses, false_alarms, generator.uniform(0.1, 0.4) if has_position_bias else 0.0)


def marked(generator: np.random.Generator, right: Array, verdicts: Array, marks: int) -> JudgedScores:
    """People mark some samples, drawn at random, and make no mistake."""
    numbers: Numbers = np.arange(len(right))
    by_people = np.full(len(right), np.nan)
    chosen = generator.choice(len(right), marks, replace=False)
    by_people[chosen] = right[chosen]
    return JudgedScores(numbers, verdicts, by_people, np.where(np.isfinite(by_people), verdicts, np.nan))
