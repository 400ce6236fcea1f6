"""Scores answers to a task: here, and by Python code where the task has some that scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.outcome import Answer
from services.common.sandboxes.task_code.ports import CodeFiles
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.code.filter_by_code import AnswerToFilter
from services.results.scoring.code.score_by_code import AnswerToCode, ScoreByCode
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.ports import AnswerScorer, AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget
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
        to_score = [AnswerToScore(target, answer) for _, target, answer in answers]
        if not scoring.has_code:
            return await score_answers(self.scorer, scoring, uncompiled, to_score)
        files = await self.records.code(plan.run_id, scoring.code_digest)
        docs = await self._docs(plan, index, [sample for sample, *_ in answers])
        coding = _Coding(self.by_code, scoring, files, [sample for sample, *_ in answers], docs)
        scored = dict(enumerate(await coding.filtered(to_score)))
        places = [place for place, one in scored.items() if isinstance(one, AnswerToScore)]
        left = [one for one in scored.values() if isinstance(one, AnswerToScore)]
        found = await coding.scored(places, left, await score_answers(self.scorer, scoring, uncompiled, left))
        by_place = dict(zip(places, found, strict=True))
        return [by_place[place] if isinstance(one, AnswerToScore) else one for place, one in scored.items()]

    async def _docs(self, plan: RunPlan, index: int, samples: Sequence[int]) -> Mapping[int, str]:
        """Rows of samples, by their numbers in the run."""
        task = plan.tasks[index]
        positions = sorted({sample - task.first_sample for sample in samples})
        found = await self.sample_sets.docs(task.sample_set_id, positions)
        return {position + task.first_sample: doc for position, doc in found.items()}


@dataclass(frozen=True, slots=True)
class _Coding:
    """What code of the task adds to the scores of some answers. `samples` are their numbers in the run."""

    by_code: ScoreByCode
    scoring: CompiledScoring
    files: CodeFiles
    samples: Sequence[int]
    docs: Mapping[int, str]

    async def filtered(self, answers: Sequence[AnswerToScore]) -> Sequence[AnswerToScore | ScoringImpossible]:
        """The answers with what filters by code leave of them."""
        if not self.scoring.coded_pipelines:
            return answers
        given = [
            AnswerToFilter(sample, self.docs.get(sample, ""), one.answer, one.target.choice_texts)
            for sample, one in zip(self.samples, answers, strict=True)
        ]
        found = await self.by_code.filter(self.scoring, self.files, given)
        return [
            left if isinstance(left, ScoringImpossible) else one._replace(filtered=left)
            for one, left in zip(answers, found, strict=True)
        ]

    async def scored(
        self, places: Sequence[int], answers: Sequence[AnswerToScore], scored: Sequence[Scored]
    ) -> Sequence[Scored]:
        """The scores with those by code, in their order. `places`: of each answer among the samples."""
        if not self.scoring.coded_metrics:
            return scored
        given = {
            number: AnswerToCode(self.samples[place], self.docs.get(self.samples[place], ""), answer, one)
            for number, (place, answer, one) in enumerate(zip(places, answers, scored, strict=True))
            if isinstance(one, Score)
        }
        found = await self.by_code.score(self.scoring, self.files, list(given.values()))
        by_number = dict(zip(given, found, strict=True))
        return [by_number.get(number, one) for number, one in enumerate(scored)]
