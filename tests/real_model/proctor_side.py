"""The same tasks through a whole Proctor: its own rows and prompts, and the model in its own vLLM engine."""

import hashlib
import os
from itertools import groupby
from pathlib import Path

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.values.providers.pool import Pool
from tests.e2e.harness.run_ends import all_outcomes, completed
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import MODEL, REPOSITORY
from tests.real_model.compared_tasks import COMPARED_TASKS, LIMIT, ComparedTask
from tests.real_model.examined_side import ExaminedSide, ExaminedTask, Said

RUN_SECONDS = 180.0


async def examine_with_proctor(pool: Pool, folder: Path) -> ExaminedSide:
    by_suite = {suite: list(tasks) for suite, tasks in groupby(COMPARED_TASKS, key=lambda task: task.suite)}
    order = StackOrder(
        pools=(pool,),
        suites=tuple(REPOSITORY / "suites" / suite for suite in by_suite),
        environment={**SHORT_TIMEOUTS, "PROCTOR_DATA_DIR": os.environ["PROCTOR_DATA_DIR"]},
    )
    found: dict[str, ExaminedTask] = {}
    async with stack_harness(folder, order) as stack:
        for suite, tasks in by_suite.items():
            run_id = await completed(stack, run_order(suite, tasks), RUN_SECONDS)
            found |= {task.name: await examined_task(stack, run_id, task.name) for task in tasks}
    return found


def run_order(suite: str, tasks: list[ComparedTask]) -> run_pb2.RunOrder:
    [max_tokens] = {task.max_tokens for task in tasks}
    return run_pb2.RunOrder(
        project_id=1,
        suite=suite,
        tasks=[task.name for task in tasks],
        model=MODEL,
        limit=LIMIT,
        num_fewshot=0,
        params=run_pb2.GenerationParams(max_tokens=max_tokens),
        truncation=run_pb2.TRUNCATION_LEFT,
    )


async def examined_task(stack: StackHarness, run_id: str, task: str) -> ExaminedTask:
    outcomes = await all_outcomes(stack, run_id, task)
    summary = await stack.client.summary(run_id)
    [figures] = [each.metrics for each in summary.tasks if each.task == task]
    return ExaminedTask(
        said=[said_of(outcome) for outcome in outcomes],
        figures={figure.metric: figure.mean for figure in figures},
        sample_file=await sample_file(stack, run_id, task),
    )


async def sample_file(stack: StackHarness, run_id: str, task: str) -> bytes:
    request = export_pb2.ExportRunRequest(run_id=run_id, task=task, format=export_pb2.EXPORT_FORMAT_LM_EVAL)
    return b"".join([piece.content async for piece in stack.client.exports.ExportRun(request)])


def said_of(recorded: outcome_pb2.RecordedOutcome) -> Said:
    answer = recorded.outcome.answer
    return Said(
        doc_id=recorded.doc_id,
        prompt_hash=hashlib.sha256(recorded.prompt.encode()).hexdigest(),
        choices=tuple(recorded.choices),
        logprobs=tuple(choice.logprob for choice in answer.choices),
        text=answer.text,
        scores=dict(recorded.scores),
        prompt_tokens=recorded.outcome.usage.prompt_tokens,
    )
