"""Recorded answers under another scoring: their scores as columns, and how many are taken differently."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.outcome import Answer, Failure
from services.results.outcomes.outcome import ListedOutcome, ScoredRow
from services.results.scoring.answer import Score, ScoringImpossible, Target
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.score_answer import score_answer
from services.results.summaries.task_columns import TaskColumns

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class UnscoredAnswer:
    """`problem`: why, as a clause."""

    sample: int
    rollout: int
    row_id: str
    problem: str


class RescoredAnswers:
    """What has no answer is counted as failed, and so is what the new scoring cannot take (`unscored`).

    `needs_targets`: rows of a data set may expect nothing, and are then in no figure. Metrics of suites say
    themselves what an empty list of targets means.
    """

    def __init__(
        self, scoring: CompiledScoring, label_count: int = 0, *, needs_targets: bool = False
    ) -> None:
        self._scoring = scoring
        self._needs_targets = needs_targets
        self.columns = TaskColumns(scoring, label_count)
        self.scored = 0
        self.unparsed = 0
        self.changed = 0
        self.failed = 0
        self.unscored = 0
        self.named: list[UnscoredAnswer] = []

    def add(self, outcomes: Sequence[ListedOutcome]) -> None:
        self.columns.add([row for listed in outcomes if (row := self._row(listed)) is not None])

    def _row(self, listed: ListedOutcome) -> ScoredRow | None:
        outcome = listed.scored.outcome
        if outcome.answer is None:
            self.failed += 1
            return None
        try:
            score = self._score(listed.sample.target, outcome.answer)
        except ScoringImpossible as error:
            self.failed += 1
            self.unscored += 1
            if len(self.named) < MOST_NAMED:
                answer = UnscoredAnswer(outcome.sample, outcome.rollout, listed.sample.row_id, str(error))
                self.named.append(answer)
            return None
        self.scored += 1
        self.unparsed += score.is_unparsed
        was_failed = isinstance(outcome.result, Failure)
        self.changed += was_failed or score.prediction != listed.scored.prediction
        return outcome.sample, outcome.rollout, score.scores

    def _score(self, target: Target, answer: Answer) -> Score:
        if self._needs_targets and not target.texts:
            raise ScoringImpossible("it has no target")
        return score_answer(self._scoring, target, answer)
