"""Tasks of the suite that a run ordered, each to be rendered from its rows."""

from dataclasses import dataclass
from functools import partial

from services.scheduler.runs.run import Run
from services.scheduler.runs.run_order import RunOrder
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.shards.tasks_to_plan import OpenedTask, TasksToPlan, TaskToPlan
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.suites.rendering.render_samples import RenderedTask, open_task
from services.scheduler.suites.rows.row_source import RowSource
from services.scheduler.suites.suite import TaskDefinition


@dataclass(frozen=True)
class FindSuiteTasks:
    suites: SuiteCatalogue
    rows: RowSource

    async def tasks_of(self, run: Run) -> TasksToPlan:
        """Raises a `SuiteError`, as opening a task and reading its samples may."""
        suite = await self.suites.suite(run.suite_name)
        ordered = [suite.task(name) for name in run.order.tasks] or suite.tasks
        names = {task.name for task in ordered}
        return TasksToPlan(
            [TaskToPlan(task.name, task.scoring, partial(self._open, task, run.order)) for task in ordered],
            suite.groups,
            [task.name for task in suite.tasks if task.name not in names],
        )

    def _open(self, task: TaskDefinition, order: RunOrder) -> OpenedTask:
        rendered = open_task(task, self.rows, order.num_fewshot, order.limit)
        planned = _planned_task(task, order.num_fewshot, rendered)
        facts = {"definition": task.definition_digest}
        if planned.num_fewshot:
            facts["fewshot_seed"] = str(task.fewshot.seed)
        return OpenedTask(planned, rendered.samples, facts)


def _planned_task(task: TaskDefinition, ordered_shots: int | None, rendered: RenderedTask) -> PlannedTask:
    return PlannedTask(
        task=task.name,
        version=task.version,
        sample_set_id="",
        first_sample=0,
        sample_count=0,
        output_type=task.scoring.output_type,
        num_fewshot=task.fewshot.num_fewshot if ordered_shots is None else ordered_shots,
        is_stand_in=rendered.is_stand_in,
        dataset=str(task.rows),
        dataset_revision=rendered.revision,
        generation=task.generation,
    )
