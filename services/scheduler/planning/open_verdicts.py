"""The one task of a judging run: a sample for each answer of the judged run, read page by page."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from proctor.values.judging.scale import scale_options
from proctor.values.run import RunId
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.threads.cancellable_threads import check_cancelled
from services.scheduler.judging.errors import NoAnswers
from services.scheduler.judging.judge import Judge
from services.scheduler.judging.judged_answer import AskVerdict, JudgedAnswer
from services.scheduler.judging.ports import AnswersOfRuns, JudgePrompts
from services.scheduler.planning.pair_answers import AnswersBesideTargets, PairedAnswers
from services.scheduler.planning.task_to_plan import OpenedTask, TaskToPlan
from services.scheduler.runs.lifecycle.run import PlannedTask
from services.scheduler.runs.orders.resolve_judge_order import scale_of
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.errors import InvalidRow
from services.scheduler.suites.rendering.sample import MAX_SAMPLE_BYTES, RenderedSample
from services.scheduler.suites.suite import Generation

_MAX_TOKENS = 2048
# With a greedy engine all repetitions of a verdict would be the same one.
_TEMPERATURE_OF_REPETITIONS = 1.0


@dataclass(frozen=True, slots=True)
class OpenVerdicts:
    prompts: JudgePrompts
    answers: AnswersOfRuns

    def task(self, order: RunOrder, judge: Judge) -> TaskToPlan:
        """Called in the event loop, on which the answers are read while a thread renders."""
        prompt = self.prompts.read(judge.document)
        scale = scale_of(judge, prompt)
        ask = AskVerdict(prompt, scale, judge.is_constrained, has_clusters=judge.rollouts > 1)
        uses = [MetricUse("verdict", scale_options(scale))]
        if judge.is_of_pairs:
            # The main one; the other one is then the score of the answer that is shown first.
            uses.insert(0, MetricUse("preference"))
        scoring = TaskScoring(OutputType.GENERATE_UNTIL, tuple(uses))
        opening = partial(self._open, order, judge, ask, asyncio.get_running_loop())
        return TaskToPlan(judge.prompt, scoring, opening)

    def _open(
        self, order: RunOrder, judge: Judge, ask: AskVerdict, loop: asyncio.AbstractEventLoop
    ) -> OpenedTask:
        planned = PlannedTask(
            task=judge.prompt,
            version=judge.version,
            output_type=OutputType.GENERATE_UNTIL,
            row_source=f"answers of run {judge.run_id}",
            row_source_revision="",
            generation=Generation(
                max_tokens=_MAX_TOKENS,
                temperature=_TEMPERATURE_OF_REPETITIONS if order.rollouts > 1 else 0.0,
            ),
        )
        answers = self.answers
        if judge.against_run_id:
            answers = PairedAnswers(answers, RunId(judge.against_run_id))
        elif judge.against_target:
            answers = AnswersBesideTargets(answers, judge.prompt)
        pages = _in_thread(answers.pages(RunId(judge.run_id)), loop)
        limit = order.limit and order.limit * (2 if judge.is_of_pairs else 1)
        samples = islice(_samples(judge, ask, pages), limit)
        return OpenedTask(planned, samples, {"definition": judge.digest})


def _in_thread(
    pages: AsyncIterator[Sequence[JudgedAnswer]], loop: asyncio.AbstractEventLoop
) -> Iterator[Sequence[JudgedAnswer]]:
    """The pages for a thread: each is read on the loop, whose calls have a deadline, when it is asked for."""

    async def following() -> Sequence[JudgedAnswer] | None:
        return await anext(pages, None)

    while (page := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not None:
        check_cancelled()
        yield page


def _samples(
    judge: Judge, ask: AskVerdict, pages: Iterator[Sequence[JudgedAnswer]]
) -> Iterator[RenderedSample]:
    position = 0
    for page in pages:
        for judged in page:
            for sample in ask.samples(position, judged):
                if sample.stored_bytes > MAX_SAMPLE_BYTES:
                    problem = (
                        f"its verdict takes {sample.stored_bytes} bytes to ask for, of {MAX_SAMPLE_BYTES}"
                    )
                    raise InvalidRow(judge.prompt, judged.sample, problem)
                position += 1
                yield sample
    if not position:
        raise NoAnswers(run_id=judge.run_id)
