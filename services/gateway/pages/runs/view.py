"""Views of a run for its templates."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import BaseModel

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import FINAL_STATES
from proctor.values.usage import TokenUsage
from proctor.wire.decisions import decision_sentence
from services.gateway.api.runs.job import error_sentence, ran_seconds
from services.gateway.http.presentation import present
from services.gateway.pages.rows.figure import Figure
from services.gateway.pages.rows.runs import RunRow, run_shown

# Actions that a state allows, in the order of their buttons; the dangerous one is the last.
_ACTIONS = {
    "pending": ("pause", "cancel"),
    "running": ("pause", "cancel"),
    "paused": ("resume", "cancel"),
    "failed": ("retry", "delete"),
    "cancelled": ("retry", "delete"),
    "completed": ("delete",),
}


class TaskRow(BaseModel):
    """A task of a run. `total` is 0 until it is planned; `figure` is empty until there is one."""

    task: str
    total: int = 0
    recorded: int = 0
    figure: Figure = Figure()


class PoolLoad(BaseModel):
    """Sums over the workers of the run's pool; None where their engine is remote."""

    workers: int
    samples_in_flight: int
    running_requests: int | None
    waiting_requests: int | None
    kv_cache_usage: float | None


class LiveView(RunRow):
    """A run, with the part of its page that changes while it goes."""

    now: datetime
    ran_seconds: float
    eta_low_seconds: float | None
    eta_high_seconds: float | None
    usage: TokenUsage
    cost: float | None
    currency: str
    max_cost: float | None
    tasks: list[TaskRow]
    failures: dict[str, int]
    unparsed: int
    engine: PoolLoad | None
    decision: str
    against_run_id: str

    @property
    def actions(self) -> Sequence[str]:
        actions = _ACTIONS.get(self.status, ())
        if not self.is_final:
            return actions
        if not self.archive_state:
            return (*actions[:-1], "archive", actions[-1])
        # Its answers have to be back before it is retried.
        return ("delete",) if self.archive_state == "restoring" else ("restore", "delete")

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    @property
    def is_final(self) -> bool:
        return self.status in FINAL_STATES


def live_view(
    run: run_pb2.Run,
    summary: summary_pb2.RunSummary,
    workers: Iterable[scheduler_pb2.WorkerInfo],
    now: datetime,
    ordered: Sequence[str] = (),
) -> LiveView:
    """`summary` is empty before the run is planned; until then `ordered` are the names of its tasks."""
    return run_shown(
        LiveView,
        run,
        now=now,
        ran_seconds=ran_seconds(run, now),
        currency=run.price.currency,
        tasks=_task_rows(run, summary) or [TaskRow(task=name) for name in ordered],
        unparsed=sum(task.unparsed for task in run.progress.tasks),
        error=error_sentence(run) or "",
        decision=decision_sentence(run),
        against_run_id=run.order.until_decided.against_run_id,
        engine=_engine(run, workers),
    )


def _task_rows(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> list[TaskRow]:
    """All tasks from the start, so that no row moves."""
    figures = {task.task: present(Figure, task.metrics[0]) for task in summary.tasks if task.metrics}
    return [present(TaskRow, task, figure=figures.get(task.task, Figure())) for task in run.progress.tasks]


def _engine(run: run_pb2.Run, workers: Iterable[scheduler_pb2.WorkerInfo]) -> PoolLoad | None:
    """None where no worker of its pool is live."""
    own = [worker for worker in workers if worker.pool == run.pool]
    if not own:
        return None
    loads = [worker.load for worker in own if worker.HasField("load")]
    return PoolLoad(
        workers=len(own),
        samples_in_flight=sum(worker.samples_in_flight for worker in own),
        running_requests=sum(load.running_requests for load in loads) if loads else None,
        waiting_requests=sum(load.waiting_requests for load in loads) if loads else None,
        kv_cache_usage=max(load.kv_cache_usage for load in loads) if loads else None,
    )


def retried(run: run_pb2.Run) -> str:
    """How often it was retried, in words; "" for never."""
    if run.epoch < 2:
        return ""
    return f"retried {run.epoch - 1} times" if run.epoch > 2 else "retried once"
