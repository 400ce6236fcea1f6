"""A run as it is shown: its state, progress, speed, and why it waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.run import RunCounts, RunState, TaskCounts
from proctor.values.usage import TokenUsage
from services.scheduler.progress.run_speed import RunSpeed, TimeLeft, time_left
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.cost_limit import cost_of
from services.scheduler.runs.lifecycle.run import SUMMARISING, PlannedTask, Run
from services.scheduler.workers.worker import Worker, awaited_server, awaited_worker


@dataclass(frozen=True, slots=True)
class TaskProgress:
    task: str
    total: int
    counts: TaskCounts
    is_stand_in: bool


@dataclass(frozen=True, slots=True)
class RunProgress:
    total: int
    completed: int
    current_step: str
    tasks: Sequence[TaskProgress] = ()
    speed: RunSpeed | None = None
    left: TimeLeft | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    run: Run
    progress: RunProgress
    wait: RunWait | None = None


@dataclass(frozen=True, slots=True)
class LiveFigures:
    """What is known of a run at this moment beside its row."""

    tasks: Sequence[PlannedTask] = ()
    counts: RunCounts | None = None
    speed: RunSpeed | None = None
    workers: Sequence[Worker] = ()


def progress_of(run: Run, live: LiveFigures) -> RunProgress:
    counts = live.counts or RunCounts(run.epoch)
    speed = live.speed if run.state is RunState.RUNNING else None
    return RunProgress(
        total=run.total,
        completed=counts.recorded,
        current_step=current_step(run, counts, live.workers),
        tasks=_task_progress(run, live.tasks, counts),
        speed=speed,
        left=time_left(run.total - counts.recorded, speed) if run.is_planned else None,
        failures=counts.failures,
        usage=counts.usage,
        cost=cost_of(run, counts),
    )


def current_step(run: Run, counts: RunCounts, workers: Sequence[Worker]) -> str:
    if run.is_over:
        return "done"
    if run.state.is_final:
        return SUMMARISING
    if run.state is not RunState.RUNNING:
        return "paused" if run.state is RunState.PAUSED else "waiting"
    if not run.is_planned:
        return run.step or "planning"
    if run.is_closing:
        return run.step
    if counts.recorded >= run.total:
        return SUMMARISING
    return (
        awaited_worker(run.order.model, run.pool, workers)
        or awaited_server(run.order.base_url, run.pool, workers)
        or "running"
    )


def _task_progress(run: Run, tasks: Sequence[PlannedTask], counts: RunCounts) -> Sequence[TaskProgress]:
    counts_by_task = {task.task: task for task in counts.tasks}
    return tuple(
        TaskProgress(
            task=task.task,
            total=task.sample_count * run.order.rollouts,
            counts=counts_by_task.get(task.task, TaskCounts(task.task)),
            is_stand_in=task.is_stand_in,
        )
        for task in tasks
    )
