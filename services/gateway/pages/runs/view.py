"""Views of a run for its templates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.model_name import name_of, provider_of
from proctor.values.run import FINAL_NUMBERS
from proctor.wire.enums import word_of
from services.gateway.api.runs.job import error_sentence, ran_seconds
from services.gateway.http.presentation import moment, optional

_ACTIONS: dict[int, Sequence[str]] = {
    run_pb2.RUN_STATE_PENDING: ("pause", "cancel"),
    run_pb2.RUN_STATE_RUNNING: ("pause", "cancel"),
    run_pb2.RUN_STATE_PAUSED: ("resume", "cancel"),
    run_pb2.RUN_STATE_FAILED: ("retry", "delete"),
    run_pb2.RUN_STATE_CANCELLED: ("retry", "delete"),
    run_pb2.RUN_STATE_COMPLETED: ("delete",),
}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task of a run. `total` is 0 until it is planned, `score` None until there is a figure."""

    name: str
    total: int = 0
    recorded: int = 0
    metric: str = ""
    score: float | None = None
    half_width: float | None = None
    is_stand_in: bool = False


@dataclass(frozen=True, slots=True)
class PoolLoadShown:
    """Sums over the workers of the run's pool; None where their engine is remote."""

    workers: int
    samples_in_flight: int
    running_requests: int | None
    waiting_requests: int | None
    kv_cache: float | None


@dataclass(frozen=True, slots=True)
class Wait:
    position: int
    blocked_by: str
    seconds: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class LiveView:
    """The part of a page that changes while a run goes."""

    run_id: str
    state: str
    is_final: bool
    phase: str
    now: datetime
    total: int
    recorded: int
    speed: float | None
    tokens_per_second: float | None
    eta: float | None
    eta_low: float | None
    eta_high: float | None
    ran_seconds: float
    tokens: int
    cost: float | None
    currency: str
    max_cost: float | None
    deadline: datetime | None
    tasks: Sequence[TaskRow]
    failures: Sequence[tuple[str, int]]
    unparsed: int
    wait: Wait | None
    error: str
    engine: PoolLoadShown | None
    actions: Sequence[str]

    @property
    def failed(self) -> int:
        return sum(count for _, count in self.failures)


@dataclass(frozen=True, slots=True)
class RunHead:
    """The part of a page that never changes: the run itself. `has_rollouts`: agents work on tasks."""

    run_id: str
    model: str
    benchmark: str
    dataset_id: str
    user: str
    project_id: int
    created_at: datetime | None
    facts: Sequence[str]
    has_rollouts: bool = False

    @property
    def provider(self) -> str:
        return provider_of(self.model)

    @property
    def model_name(self) -> str:
        return name_of(self.model)


def run_head(run: run_pb2.Run, *, has_rollouts: bool = False) -> RunHead:
    order = run.order
    return RunHead(
        run_id=run.run_id,
        model=order.model,
        benchmark=run.dataset_name or order.suite or order.dataset_id,
        dataset_id=order.dataset_id,
        user=run.user,
        project_id=order.project_id,
        created_at=moment(run.created_at),
        facts=list(_order_facts(run)),
        has_rollouts=has_rollouts,
    )


def live_view(
    run: run_pb2.Run,
    summary: summary_pb2.RunSummary,
    workers: Iterable[scheduler_pb2.WorkerInfo],
    now: datetime,
    ordered: Sequence[str] = (),
) -> LiveView:
    """`summary` is empty before the run is planned; until then `ordered` are the names of its tasks."""
    progress = run.progress
    order = run.order
    return LiveView(
        run_id=run.run_id,
        state=word_of(run_pb2.RunState, run.state),
        is_final=run.state in FINAL_NUMBERS,
        phase=progress.phase,
        now=now,
        total=progress.total,
        recorded=progress.recorded,
        speed=optional(progress, "samples_per_second"),
        tokens_per_second=optional(progress, "tokens_per_second"),
        eta=optional(progress, "eta_seconds"),
        eta_low=optional(progress, "eta_low_seconds"),
        eta_high=optional(progress, "eta_high_seconds"),
        ran_seconds=ran_seconds(run, now),
        tokens=progress.usage.prompt_tokens + progress.usage.completion_tokens,
        cost=optional(progress, "cost"),
        currency=run.price.currency,
        max_cost=optional(order, "max_cost"),
        deadline=moment(run.deadline),
        tasks=_task_rows(run, summary) or [TaskRow(name) for name in ordered],
        failures=sorted(progress.failures.items(), key=lambda each: -each[1]),
        unparsed=sum(task.unparsed for task in progress.tasks),
        wait=_wait(run),
        error=error_sentence(run) or "",
        engine=_engine(run, workers),
        actions=actions_of(run.state),
    )


def _task_rows(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> list[TaskRow]:
    """All tasks from the start, so that no row moves."""
    figures = {task.task: task.metrics[0] for task in summary.tasks if task.metrics}
    rows = []
    for task in run.progress.tasks:
        figure = figures.get(task.task)
        score = optional(figure, "mean") if figure else None
        has_interval = figure is not None and figure.HasField("ci_low") and figure.HasField("ci_high")
        rows.append(
            TaskRow(
                name=task.task,
                total=task.total,
                recorded=task.recorded,
                metric=figure.metric if figure else "",
                score=score,
                half_width=(figure.ci_high - figure.ci_low) / 2 if figure and has_interval else None,
                is_stand_in=task.is_stand_in,
            )
        )
    return rows


def _wait(run: run_pb2.Run) -> Wait | None:
    if not run.HasField("wait"):
        return None
    wait = run.wait
    return Wait(
        position=wait.position,
        blocked_by=wait.blocked_by,
        seconds=optional(wait, "estimated_seconds"),
        low=optional(wait, "estimated_low_seconds"),
        high=optional(wait, "estimated_high_seconds"),
    )


def _engine(run: run_pb2.Run, workers: Iterable[scheduler_pb2.WorkerInfo]) -> PoolLoadShown | None:
    """None where no worker of its pool is live."""
    own = [worker for worker in workers if worker.pool == run.pool]
    if not own:
        return None
    loads = [worker.load for worker in own if worker.HasField("load")]
    return PoolLoadShown(
        workers=len(own),
        samples_in_flight=sum(worker.samples_in_flight for worker in own),
        running_requests=sum(load.running_requests for load in loads) if loads else None,
        waiting_requests=sum(load.waiting_requests for load in loads) if loads else None,
        kv_cache=max(load.kv_cache_usage for load in loads) if loads else None,
    )


def _order_facts(run: run_pb2.Run) -> Iterable[str]:
    """The options of the order beside model and suite, in words."""
    order = run.order
    if run.scoring_method:
        yield f"scored by {word_of(run_pb2.ScoringMethod, run.scoring_method)}"
    if order.HasField("num_fewshot"):
        yield f"{order.num_fewshot} shots"
    if order.HasField("limit"):
        yield f"first {order.limit} rows of each task"
    if order.HasField("rollouts") and order.rollouts > 1:
        yield f"{order.rollouts} rollouts"
    if order.tasks:
        yield f"{len(order.tasks)} tasks of the suite"
    if order.reuse_answers:
        yield "reuses stored answers"
    if run.epoch > 1:
        yield f"retried {run.epoch - 1} times" if run.epoch > 2 else "retried once"


def actions_of(state: run_pb2.RunState.ValueType) -> Sequence[str]:
    """Actions that the state allows, in the order of their buttons; the dangerous one is the last."""
    return _ACTIONS.get(state, ())
