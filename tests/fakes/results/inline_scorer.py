"""Scores where it is called: as the processes do, without their bounds."""

import asyncio
from collections.abc import Sequence

from services.results.scoring.compiled_scoring import CompiledScoring, compile_scoring
from services.results.scoring.ports import AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.score_answer import score_answer


class InlineScorer:
    """Answers whose texts are in `held` wait for the event."""

    def __init__(self) -> None:
        self.held: dict[str, asyncio.Event] = {}
        self.called = self.most_at_once = self._running = 0

    async def score(
        self, uncompiled: UncompiledScoring, answers: Sequence[AnswerToScore]
    ) -> Sequence[Scored]:
        self.called += 1
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        for _, answer, _ in answers:
            if answer.text in self.held:
                await self.held[answer.text].wait()
        self._running -= 1
        scoring = compile_scoring(uncompiled.scoring, uncompiled.method)
        return [_score(scoring, answer) for answer in answers]


def _score(scoring: CompiledScoring, answer: AnswerToScore) -> Scored:
    try:
        return score_answer(scoring, *answer)
    except ScoringImpossible as impossible:
        return impossible
