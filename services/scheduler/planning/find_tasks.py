"""The tasks of a run that is planned: those of its suite, or one of its data set's rows or its verdicts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

from proctor.values.scoring import MetricUse, OutputType, TaskGroup, TaskScoring
from services.common.threads.cancellable_threads import check_cancelled
from services.scheduler.planning.open_verdicts import OpenVerdicts
from services.scheduler.planning.task_to_plan import OpenedTask, TasksToPlan, TaskToPlan
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.suites.rendering.render_task import RenderedTask, open_task
from services.scheduler.suites.rendering.sample import MAX_SAMPLE_BYTES, RenderedSample
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.uploads.dataset import NamedContent
from services.scheduler.uploads.errors import RowTooLarge
from services.scheduler.uploads.ports import ContentSource
from services.scheduler.uploads.storage.row_sample import TASK, VERSION, sample_of_line
from services.scheduler.uploads.storage.store_parts import LoadRows

_BUDGETS = ("max_steps", "max_tokens")
# Continuations usually start with a space; targets do not, so strip it.
_FILTERS = '[{"name": "none", "filter": [{"function": "remove_whitespace"}]}]'


@dataclass(frozen=True, slots=True)
class FindTasks:
    suites: SuiteCatalogue
    rows: RowSource
    contents: ContentSource
    load_rows: LoadRows
    open_verdicts: OpenVerdicts

    async def find(self, run: Run) -> TasksToPlan:
        """The tasks of a run. Raises a `SuiteError`, as opening a task and reading its samples may.

        Of a data set, raises `DatasetNotFound`; reading may raise `RowTooLarge` or `ObjectStoreUnavailable`.
        """
        order = run.order
        if order.dataset_id:
            named = await self.contents.content(order.dataset_id)
            opening = partial(self._open_dataset, named, order.limit)
            task = TaskToPlan(TASK, row_scoring(order.metrics), opening, is_of_dataset=True)
            return TasksToPlan([task], [TaskGroup(order.benchmark, (TASK,))])
        if order.judge:
            task = self.open_verdicts.task(order, order.judge)
            return TasksToPlan([task], [TaskGroup(order.benchmark, (task.name,))])
        suite = await self.suites.suite(run.suite_name)
        ordered = [suite.task(name) for name in order.tasks] or suite.tasks
        names = {task.name for task in ordered}
        return TasksToPlan(
            [
                TaskToPlan(
                    task.name,
                    task.scoring,
                    partial(self._open_task, task, order),
                    code=task.scoring_code.files if task.scoring_code else {},
                )
                for task in ordered
            ],
            suite.groups,
            [task.name for task in suite.tasks if task.name not in names],
        )

    def _open_task(self, task: TaskDefinition, order: RunOrder) -> OpenedTask:
        rendered = open_task(task, self.rows, order.num_fewshot, order.limit)
        planned = _planned_task(task, order.num_fewshot, rendered)
        facts = {"definition": task.definition_digest}
        if planned.num_fewshot:
            facts["fewshot_seed"] = str(task.fewshot.seed)
        if task.rollout_column:
            facts["agent"] = _agent(task.metadata)
        return OpenedTask(planned, rendered.samples, facts)

    def _open_dataset(self, named: NamedContent, limit: int | None) -> OpenedTask:
        planned = PlannedTask(
            task=TASK,
            version=VERSION,
            output_type=OutputType.GENERATE_UNTIL,
            row_source=named.name,
            row_source_revision=named.content.digest,
        )
        return OpenedTask(planned, self._samples(named, limit), {})

    def _samples(self, named: NamedContent, limit: int | None) -> Iterator[RenderedSample]:
        # Lazily: a data set may be larger than memory, and planning takes it chunk by chunk.
        for row, line in islice(self.load_rows.lines_from(named.content, 0), limit):
            # A thread cannot be interrupted, so it looks itself whether its run was stopped.
            check_cancelled()
            sample = sample_of_line(row, line)
            if sample.stored_bytes > MAX_SAMPLE_BYTES:
                raise _too_large(sample, named.name)
            yield sample


def _planned_task(task: TaskDefinition, ordered_shots: int | None, rendered: RenderedTask) -> PlannedTask:
    return PlannedTask(
        task=task.name,
        version=task.version,
        output_type=task.scoring.output_type,
        num_fewshot=task.fewshot.num_fewshot if ordered_shots is None else ordered_shots,
        is_stand_in=rendered.is_stand_in,
        is_of_rollouts=bool(task.rollout_column),
        row_source=str(task.rows),
        row_source_revision=rendered.revision,
        generation=task.generation,
    )


def _agent(metadata: Mapping[str, object]) -> str:
    """The agent as the suite of a set of tasks names it, in words."""
    words = str(metadata.get("agent", ""))
    budgets = [f"{metadata[name]} {name.removeprefix('max_')}" for name in _BUDGETS if name in metadata]
    return ", ".join([words, *budgets])


def row_scoring(metrics: tuple[MetricUse, ...]) -> TaskScoring:
    return TaskScoring(OutputType.GENERATE_UNTIL, metrics, _FILTERS if metrics else "")


def _too_large(sample: RenderedSample, name: str) -> RowTooLarge:
    return RowTooLarge(
        doc_id=sample.position,
        row_id=sample.row_id,
        name=name,
        bytes=sample.stored_bytes,
        limit=MAX_SAMPLE_BYTES,
    )
