"""Tasks from their files to their figures by the functions of a run, with a function for a model.

Suite files, rows, rendering, the contract's messages, scoring, recording and summing up are those of a run;
only the network and the database are left out.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import Answer, Outcome
from proctor.values.run import RunId
from proctor.values.scoring import ScoringMethod
from proctor.wire.values import GROUP, SAMPLE
from services.common.clock import SystemClock
from services.common.sandboxes.task_code.ports import CodeRunner
from services.results.outcomes.outcome import OutcomeBatch, ScoredOutcome
from services.results.runs.proto import plan_from_proto
from services.results.runs.run_plan import RunPlan
from services.results.samples.proto import sample_from_proto
from services.results.scoring.code.score_by_code import ScoreByCode
from services.results.summaries.ports import Stores
from services.results.summaries.run_summary import RunSummary
from services.scheduler.planning.grpc_results import task_to_proto
from services.scheduler.planning.ports import TaskToOpen
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.rows.row_source import RowsReference
from services.scheduler.suites.suite import SuiteDefinition, TaskDefinition
from services.scheduler.suites.yaml_installed_suites import SuiteRegistry, load_suites
from tests.fakes.results.memory_results import MemoryProgress, MemoryRows, memory_stores
from tests.fakes.results.recorded_run import new_id
from tests.fakes.results.stores import record_outcomes_of, show_summary_of

SUITES = Path(__file__).parents[2] / "suites"


@cache
def suites() -> SuiteRegistry:
    """The suites of the repository."""
    return load_suites(SUITES)


@dataclass(frozen=True)
class Examination:
    """`rows_of`: where the rows of a task come from. `num_fewshot` None: as each task says.

    `runner` executes the code of tasks; None: there is none. `answer_again`: what the model says in later
    rollouts, which are counted from 1.
    """

    suite: SuiteDefinition
    tasks: Sequence[TaskDefinition]
    rows_of: Callable[[RowsReference], RowSource]
    answer_of: Callable[[RenderedSample], Answer]
    num_fewshot: int | None = None
    runner: CodeRunner | None = None
    answer_again: Callable[[RenderedSample, int], Answer] | None = None

    @property
    def rollouts(self) -> int:
        """As the order has them that names none: of tasks that agree."""
        [repeats] = {task.repeats for task in self.tasks}
        return repeats

    def answer(self, sample: RenderedSample, rollout: int) -> Answer:
        if rollout == 0:
            return self.answer_of(sample)
        assert self.answer_again, "this model is asked once only"
        return self.answer_again(sample, rollout)


@dataclass(frozen=True)
class Examined:
    """Samples and what was recorded of them by task, both in order; and the summary of the run."""

    samples: Mapping[str, Sequence[RenderedSample]]
    outcomes: Mapping[str, Sequence[ScoredOutcome]]
    summary: RunSummary


def examine(order: Examination) -> Examined:
    return asyncio.run(_examine(order))


async def _examine(order: Examination) -> Examined:
    rows = MemoryRows()
    stores = memory_stores(rows)
    samples = {task.name: _rendered(order, task) for task in order.tasks}
    plan = await _opened(stores, order, samples)
    record = replace(record_outcomes_of(stores, MemoryProgress()), by_code=ScoreByCode(order.runner))
    await record.record([_answers(order, plan, samples)])
    summary = await show_summary_of(stores, code_runner=order.runner).show(plan.run_id)
    recorded = rows.of_run(plan.run_id)
    count = order.rollouts
    outcomes = {
        task.task: recorded[task.first_sample * count : task.end_sample * count] for task in plan.tasks
    }
    return Examined(samples, outcomes, summary)


def _rendered(order: Examination, task: TaskDefinition) -> list[RenderedSample]:
    rows = CodedRows(order.rows_of(task.rows), order.runner)
    return list(open_task(task, rows, num_fewshot=order.num_fewshot).samples)


async def _opened(
    stores: Stores, order: Examination, samples: Mapping[str, Sequence[RenderedSample]]
) -> RunPlan:
    planned: list[TaskToOpen] = []
    first = 0
    for task in order.tasks:
        sample_set_id = await _committed(stores, samples[task.name])
        count = len(samples[task.name])
        planned.append(TaskToOpen(_planned(task, sample_set_id, range(first, first + count)), task.scoring))
        first += count
    run = _run()
    plan = plan_from_proto(
        run_record_pb2.OpenRunRequest(
            run_id=run.run_id,
            rollouts=order.rollouts,
            tasks=[task_to_proto(task, run) for task in planned],
            scoring_method=run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
            groups=[GROUP.to_proto(group) for group in order.suite.groups],
        )
    )
    await stores.records.open(plan, 1)
    codes = {task.scoring.code_digest: task.scoring_code.files for task in order.tasks if task.scoring_code}
    await stores.records.add_code(plan.run_id, codes)
    return plan


def _run() -> Run:
    ordered_at = SystemClock().now()
    order = RunOrder("examined", "openai/fake")
    return Run(RunId(new_id()), order, "local", "remote", ScoringMethod.LOGLIKELIHOOD, ordered_at)


async def _committed(stores: Stores, samples: Sequence[RenderedSample]) -> str:
    staging_id = new_id()
    sent = [sample_from_proto(SAMPLE.to_proto(sample)) for sample in samples]
    await stores.sample_sets.stage(staging_id, sent)
    return (await stores.sample_sets.commit(staging_id, len(samples))).sample_set_id


def _planned(task: TaskDefinition, sample_set_id: str, numbers: range) -> PlannedTask:
    return PlannedTask(
        task=task.name,
        version=task.version,
        sample_set_id=sample_set_id,
        first_sample=numbers.start,
        sample_count=len(numbers),
        output_type=task.scoring.output_type,
        num_fewshot=task.fewshot.num_fewshot,
        is_stand_in=False,
        row_source=str(task.rows),
        row_source_revision="",
        generation=task.generation,
    )


def _answers(
    order: Examination, plan: RunPlan, samples: Mapping[str, Sequence[RenderedSample]]
) -> OutcomeBatch:
    outcomes = [
        Outcome(
            task.first_sample + index,
            rollout,
            0,
            1,
            replace(order.answer(sample, rollout), finish_reason="stop"),
        )
        for task in plan.tasks
        for index, sample in enumerate(samples[task.task])
        for rollout in range(order.rollouts)
    ]
    return OutcomeBatch(plan.run_id, 1, outcomes, {})
