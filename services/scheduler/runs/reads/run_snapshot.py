"""A run as it is shown: its state, progress, speed, why it waits, and what it will probably cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from proctor.values.run import RunCounts, RunState, TaskCounts
from proctor.values.usage import ModelPrice, TokenUsage
from services.scheduler.audit.audit_record import Change
from services.scheduler.progress.run_speed import RunSpeed, time_left
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_estimate import TimeEstimate, expected_outcomes
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.cost_limit import cost_of
from services.scheduler.runs.lifecycle.run import CLOSING, PlannedTask, Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.runs.reads.run_list import PastUsage


@dataclass(frozen=True, slots=True)
class TaskProgress:
    task: str
    total: int
    recorded: int
    failed: int
    unparsed: int
    is_stand_in: bool


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The speed is that of the last seconds, and that of the whole time once the run is finished.

    `eta` is the time left by it, low and high by those of late.
    """

    total: int
    recorded: int
    phase: str
    tasks: Sequence[TaskProgress] = ()
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    eta_seconds: float | None = None
    eta_low_seconds: float | None = None
    eta_high_seconds: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: float | None = None
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    run: Run
    progress: RunProgress
    wait: RunWait | None = None
    changes: Sequence[Change] = ()


def progress_of(
    run: Run,
    known: RunCounts | None,
    speed: RunSpeed | None,
    waits_for: str | None,
    tasks: Sequence[PlannedTask] = (),
) -> RunProgress:
    """The progress by what is known of the run at this moment beside its row.

    `waits_for` is a text for people, as "waiting for a worker of pool x".
    """
    counts = known or RunCounts(run.epoch)
    # The tracker keeps the last speed of a run that has lost its slot; it says nothing now.
    speed = speed if run.state is RunState.RUNNING else None
    left = time_left(run.total - counts.recorded, speed) if run.is_planned else None
    samples_per_second, tokens_per_second = (
        (speed.samples, speed.tokens) if speed else whole_speed(run, counts)
    )
    return RunProgress(
        total=run.total,
        recorded=counts.recorded,
        phase=current_phase(run, counts, waits_for),
        tasks=_task_progress(run, tasks, counts),
        samples_per_second=samples_per_second,
        tokens_per_second=tokens_per_second,
        eta_seconds=left.seconds if left else None,
        eta_low_seconds=left.low if left else None,
        eta_high_seconds=left.high if left else None,
        failures=counts.failures,
        usage=counts.usage,
        cost=cost_of(run, counts),
        is_closing=run.is_closing,
    )


def whole_speed(run: Run, counts: RunCounts) -> tuple[float | None, float | None]:
    """Samples and tokens per second of a finished run over all its epochs, without reused answers, which
    took no time."""
    if run.finished_at is None or run.admitted_at is None:
        return None, None
    seconds = run.earlier_seconds + run.ran_seconds + (run.finished_at - run.admitted_at).total_seconds()
    asked = counts.recorded - run.reused_answers
    if seconds <= 0 or asked <= 0:
        return None, None
    return asked / seconds, counts.usage.completion_tokens / seconds


def current_phase(run: Run, counts: RunCounts, waits_for: str | None) -> str:
    if run.is_closed:
        return "done"
    if run.state.is_final:
        return CLOSING
    if run.state is not RunState.RUNNING:
        return "paused" if run.state is RunState.PAUSED else "waiting"
    if not run.is_planned:
        return run.phase or "planning"
    if run.is_closing:
        return run.phase
    if counts.recorded >= run.total:
        return CLOSING
    return waits_for or "running"


def _task_progress(run: Run, tasks: Sequence[PlannedTask], counts: RunCounts) -> Sequence[TaskProgress]:
    by_task = {each.task: each for each in counts.tasks}
    rows = [(task, by_task.get(task.task, TaskCounts(task.task))) for task in tasks]
    return tuple(
        TaskProgress(
            task=task.task,
            total=run.order.outcomes_of(task.samples),
            recorded=known.recorded,
            failed=known.failed,
            unparsed=known.unparsed,
            is_stand_in=task.is_stand_in,
        )
        for task, known in rows
    )


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """When a run ends from now, and its cost in the currency of its price; None without a basis."""

    time: TimeEstimate | None
    cost: float | None


def estimated_cost(
    order: RunOrder, price: ModelPrice, history: Sequence[PastUsage], planned: Sequence[PlannedRows] = ()
) -> float | None:
    """The expected number of outcomes × the median cost of one; of runs of the same tasks if there are any.

    The median, so that one run whose server counted wrongly does not decide. None if the number of outcomes
    or the tokens of one are unknown.
    """
    counted = [past for past in history if past.run.total and past.usage != TokenUsage()]
    outcomes = expected_outcomes(order, [past.run for past in counted], planned)
    if outcomes is None or not counted:
        return None
    same = [past for past in counted if set(past.run.tasks) == set(order.tasks)] or counted
    return outcomes * median(price.cost(past.usage) / past.run.total for past in same)
