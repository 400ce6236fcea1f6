"""Scores answers to a task: here, and by Python code where the task has some that scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.outcome import Answer
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.code.score_by_code import AnswerToCode, ScoreByCode
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.ports import AnswerScorer, Scored, UncompiledScoring
from services.results.scoring.score import Score, ScoringTarget
from services.results.scoring.score_answer import score_answers

# The number of the sample in the run, its target, and an answer to it.
SampleToScore = tuple[int, ScoringTarget, Answer]


@dataclass(frozen=True, slots=True)
class ScoreTask:
    records: RunRecordStore
    sample_sets: SampleSetStore
    scorer: AnswerScorer
    by_code: ScoreByCode = field(default_factory=ScoreByCode)

    async def score(
        self,
        plan: RunPlan,
        index: int,
        how: tuple[CompiledScoring, UncompiledScoring],
        answers: Sequence[SampleToScore],
    ) -> Sequence[Scored]:
        """One for each answer, in their order."""
        scoring, uncompiled = how
        to_score = [(target, answer) for _, target, answer in answers]
        scored = list(await score_answers(self.scorer, scoring, uncompiled, to_score))
        if not scoring.coded_metrics:
            return scored
        places = [place for place, one in enumerate(scored) if isinstance(one, Score)]
        docs = await self._docs(plan, index, [answers[place][0] for place in places])
        to_code = [
            AnswerToCode(answers[place][0], docs.get(answers[place][0], ""), to_score[place], one)
            for place in places
            if isinstance(one := scored[place], Score)
        ]
        files = await self.records.code(plan.run_id, scoring.code_digest)
        by_code = await self.by_code.score(scoring, files, to_code)
        for place, one in zip(places, by_code, strict=True):
            scored[place] = one
        return scored

    async def _docs(self, plan: RunPlan, index: int, samples: Sequence[int]) -> Mapping[int, str]:
        """Rows of samples, by their numbers in the run."""
        task = plan.tasks[index]
        positions = sorted({sample - task.first_sample for sample in samples})
        found = await self.sample_sets.docs(task.sample_set_id, positions)
        return {position + task.first_sample: doc for position, doc in found.items()}
