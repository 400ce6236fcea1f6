"""Golden answers of some runs as a JSONL file for training or testing."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum

import orjson

from proctor.values.comparison import MAX_COMPARED
from proctor.values.plain import Json
from proctor.values.reasoning.answers import with_reasoning_apart
from services.common.checked_fields import invalid_field
from services.common.errors import DomainError, ErrorKind
from services.results.answers.marks import ChosenAnswer, GoldenAnswer, latest_golden_answers
from services.results.answers.ports import AnswerStore
from services.results.answers.postgres import PostgresMarks
from services.results.answers.side_by_side import tool_calls
from services.results.export.exported_run import RunChanged
from services.results.outcomes.outcome import BEFORE_ALL, ScoredOutcome
from services.results.outcomes.page_bytes import fitting_count
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.samples.row_request import asked, turns
from services.results.samples.sample import StoredSample

MARKS_AT_A_TIME = 5000
# Whole answers read at a time; fewer where they are heavy.
LINES_AT_A_TIME = 50
CHUNK_BYTES = 256 * 1024


class NoGoldenAnswers(DomainError, kind=ErrorKind.CONFLICT, reason="NO_GOLDEN_ANSWERS"):
    """There is no golden answer in {runs} yet; mark some first."""


class GoldenForm(Enum):
    """The use of the lines."""

    TRAINING = "training"
    TEST = "test"


def golden_line(form: GoldenForm, row_id: str, sample: StoredSample, scored: ScoredOutcome) -> bytes:
    """A line with its end. Parameters are left out: they are not part of what was asked."""
    if form is GoldenForm.TRAINING:
        line: Json = {"messages": [*turns(sample.prompt), _answer_turn(scored)]}
    else:
        line = {"id": row_id, **asked(sample.prompt), "target": _text(scored)}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _answer_turn(scored: ScoredOutcome) -> Json:
    """The turn with its reasoning and the tools that it calls."""
    answer = scored.outcome.answer
    turn: Json = {"role": "assistant", "content": _text(scored)}
    if answer and (reasoning := with_reasoning_apart(answer).reasoning):
        turn["reasoning_content"] = reasoning
    calls = tool_calls(answer.body_json) if answer else []
    return turn | {"tool_calls": calls} if calls else turn


def _text(scored: ScoredOutcome) -> str:
    """The answer's text without reasoning; where a choice was scored, the choice that was chosen."""
    answer = scored.outcome.answer
    return (with_reasoning_apart(answer).text if answer else "") or scored.prediction


@dataclass(frozen=True, slots=True)
class GoldenFile:
    name: str
    chunks: AsyncGenerator[bytes]


@dataclass(frozen=True, slots=True)
class ExportGoldenAnswers:
    """Memory: ~100 bytes per mark, independent of the size of answers."""

    records: RunRecordStore
    sample_sets: SampleSetStore
    answers: AnswerStore
    marks: PostgresMarks

    async def export(self, run_ids: Sequence[str], form: GoldenForm) -> GoldenFile:
        """Raises NoGoldenAnswers where there are none."""
        if not 1 <= len(run_ids) <= MAX_COMPARED or len(set(run_ids)) < len(run_ids):
            raise invalid_field("run_ids", f"must be 1 to {MAX_COMPARED} different runs")
        plans = [(await self.records.get(run_id)).plan for run_id in run_ids]
        marked = [(index, one) for index, plan in enumerate(plans) async for one in self._marked(plan)]
        chosen = latest_golden_answers(marked)
        if not chosen:
            raise NoGoldenAnswers(runs=", ".join(run_ids))
        return GoldenFile(f"golden_{form.value}.jsonl", self._chunks(plans, chosen, form))

    async def _marked(self, plan: RunPlan) -> AsyncIterator[GoldenAnswer]:
        after = BEFORE_ALL
        while page := await self.marks.golden_page(plan.run_id, after, MARKS_AT_A_TIME):
            for one in page:
                yield one
            after = page[-1].key

    async def _chunks(
        self, plans: Sequence[RunPlan], chosen: Sequence[ChosenAnswer], form: GoldenForm
    ) -> AsyncGenerator[bytes]:
        for index, plan in enumerate(plans):
            of_run = [one for one in chosen if one.run == index]
            chunk = b""
            async with aclosing(self._lines(plan, of_run, form)) as lines:
                async for line in lines:
                    chunk += line
                    if len(chunk) >= CHUNK_BYTES:
                        yield chunk
                        chunk = b""
            yield chunk

    async def _lines(
        self, plan: RunPlan, chosen: Sequence[ChosenAnswer], form: GoldenForm
    ) -> AsyncGenerator[bytes]:
        done = 0
        while done < len(chosen):
            some = await self._fitting(plan.run_id, chosen[done : done + LINES_AT_A_TIME])
            scored = await self.answers.read(plan.run_id, [one.key for one in some])
            if len(scored) < len(some):
                raise RunChanged(run_id=plan.run_id)
            for answer, one in zip(some, scored, strict=True):
                task = plan.tasks[one.task_index]
                position = one.outcome.sample - task.first_sample
                samples = await self.sample_sets.read(task.sample_set_id, [position])
                yield golden_line(form, answer.row_id, samples[position], one)
            done += len(some)

    async def _fitting(self, run_id: str, chosen: Sequence[ChosenAnswer]) -> Sequence[ChosenAnswer]:
        """The first answers that may be held at a time."""
        keys = [one.key for one in chosen]
        weights = await self.answers.weights(run_id, keys)
        return chosen[: fitting_count([weights.get(key, 0) for key in keys])]
