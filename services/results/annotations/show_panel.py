"""The judges of one question as a panel: one figure, their agreement, and where each of them leans."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from services.results.annotations.postgres import JudgeVerdict, PostgresAnnotations
from services.results.annotations.question import Question, asks, question_of
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.ports import RunRecordStore
from services.results.statistics.columns import Array, Numbers
from services.results.statistics.judged.panel import (
    Lean,
    PanelFigure,
    length_bias,
    mean_lean,
    others_of,
    panel_figure,
)
from services.results.statistics.judged.prediction_powered import MIN_MARKS

_FAMILY = re.compile(r"[a-z]+")
# Providers that serve models of their own alone.
_MAKERS = frozenset({"openai", "anthropic", "gemini"})


@dataclass(frozen=True, slots=True)
class PanelJudge:
    """`has_people`: the reference of `length` are people; else the other judges.

    `own_family` is set where the judge is of the judged model's family: against the judges that are not.
    """

    run_id: str
    model: str
    has_people: bool
    length: Lean
    own_family: Lean | None


@dataclass(frozen=True, slots=True)
class ShownPanel:
    question: Question
    figure: PanelFigure
    judges: Sequence[PanelJudge]


@dataclass(frozen=True, slots=True)
class ShowPanel:
    records: RunRecordStore
    annotations: PostgresAnnotations

    async def show(self, run_id: str) -> ShownPanel:
        """Of each model the newest judging run that asks it. Raises RecordNotFound, PairsNotAnnotated."""
        question = question_of((await self.records.get(run_id)).plan)
        judged_model = (await self.records.get(question.run_id)).plan.facts.model
        models: dict[str, str] = {}
        for judging_id in await self.annotations.judging_runs(question):
            # None of a project that the caller does not see.
            judging = await self.records.find(judging_id)
            if judging and asks(judging.plan, question):
                models.setdefault(judging.plan.facts.model, judging_id)
        runs = {judging_id: model for model, judging_id in models.items()}
        verdicts = await self.annotations.verdicts(question, [*runs])
        people = await self.annotations.drawn_scores(question)
        return await asyncio.to_thread(_panel, question, runs, verdicts, people, judged_model)


def _panel(
    question: Question,
    runs: Mapping[str, str],
    verdicts: Sequence[JudgeVerdict],
    people: Mapping[OutcomeKey, float],
    judged_model: str,
) -> ShownPanel:
    keys = sorted({one.key for one in verdicts})
    columns, rows = ({each: at for at, each in enumerate(of)} for of in (keys, [*runs]))
    table, lengths = np.full((len(runs), len(keys)), np.nan), np.zeros(len(keys))
    for one in verdicts:
        table[rows[one.run_id], columns[one.key]] = one.verdict
        lengths[columns[one.key]] = one.characters
    samples = np.array([sample for sample, _ in keys], dtype=np.int64)
    marks = np.array([people.get(key, np.nan) for key in keys])
    families = [is_own_family(model, judged_model) for model in runs.values()]
    answers = _Answers(table, lengths, samples, marks, families)
    judges = [answers.judge(row, run_id, model) for row, (run_id, model) in enumerate(runs.items())]
    return ShownPanel(question, panel_figure(table, samples, is_of_numbers=question.is_of_numbers), judges)


@dataclass(frozen=True, slots=True)
class _Answers:
    """`table`: verdicts (judges, answers); `marks` of people by answer; `families`: which judges are own."""

    table: Array
    lengths: Array
    samples: Numbers
    marks: Array
    families: Sequence[bool]

    def judge(self, row: int, run_id: str, model: str) -> PanelJudge:
        has_people = int(np.isfinite(self.marks).sum()) >= MIN_MARKS
        reference = self.marks if has_people else others_of(self.table, row)
        length = length_bias(self.table[row], reference, self.lengths, self.samples)
        strangers = [at for at, is_own in enumerate(self.families) if not is_own]
        own = None
        if self.families[row] and strangers:
            own = mean_lean(self.table[row], others_of(self.table, row, strangers), self.samples)
        return PanelJudge(run_id, model, has_people, length, own)


def is_own_family(judge: str, judged: str) -> bool:
    """Of one maker, or with one first word in their names: provider/Qwen/Qwen3-8B and provider/qwen2.5."""
    provider = judge.partition("/")[0]
    if provider in _MAKERS and provider == judged.partition("/")[0]:
        return True
    return bool(_family(judge)) and _family(judge) == _family(judged)


def _family(model: str) -> str:
    found = _FAMILY.match(model.rpartition("/")[2].lower())
    return found[0] if found else ""
