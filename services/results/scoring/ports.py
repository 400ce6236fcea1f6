"""The port by which answers are scored beside the event loop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from proctor.values.outcome import Answer
from proctor.values.scoring import ScoringMethod, TaskScoring
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget

# The score of an answer, or why it has none.
Scored = Score | ScoringImpossible


class AnswerToScore(NamedTuple):
    """`filtered`: what code of the task left of the answer, by pipeline; None where no pipeline has code."""

    target: ScoringTarget
    answer: Answer
    filtered: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class UncompiledScoring:
    """How answers are scored, uncompiled. What is `shared_by` one name shares the time for slow answers."""

    scoring: TaskScoring
    method: ScoringMethod | None
    shared_by: str


class AnswerScorer(Protocol):
    """Scores texts beside the event loop, with a bound per answer."""

    async def score(
        self, uncompiled: UncompiledScoring, answers: Sequence[AnswerToScore]
    ) -> Sequence[Scored]:
        """One for each answer, in their order."""
        ...
