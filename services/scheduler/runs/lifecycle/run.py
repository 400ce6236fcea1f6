"""A run: an accepted order, its states and which may follow which, and its tasks once it is planned."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from proctor.values.comparison import Decision
from proctor.values.names.run_labels import RunLabels
from proctor.values.names.suite_name import versioned_name
from proctor.values.priority import Priority
from proctor.values.run import FINAL_STATES, ArchiveState, RunCounts, RunId, RunState
from proctor.values.scoring import OutputType, ScoringMethod
from proctor.values.usage import ModelPrice
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.suite import Generation

# What a run shows as its phase while its figures are computed. How far they are may follow the word.
CLOSING = "closing"


_NEXT_STATES: Mapping[RunState, frozenset[RunState]] = {
    RunState.PENDING: frozenset({RunState.RUNNING, RunState.PAUSED, RunState.FAILED, RunState.CANCELLED}),
    # A preempted run is pending again in the same epoch.
    RunState.RUNNING: FINAL_STATES | {RunState.PAUSED, RunState.PENDING},
    RunState.PAUSED: frozenset({RunState.PENDING, RunState.FAILED, RunState.CANCELLED}),
    RunState.COMPLETED: frozenset(),
    # A retry is pending in a new epoch.
    RunState.FAILED: frozenset({RunState.PENDING}),
    RunState.CANCELLED: frozenset({RunState.PENDING}),
}


def may_become(state: RunState, following: RunState) -> bool:
    return following in _NEXT_STATES[state]


def states_before(state: RunState) -> tuple[RunState, ...]:
    """States from which a run may reach this one."""
    return tuple(earlier for earlier, later in _NEXT_STATES.items() if state in later)


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: a reason by name, and a sentence with advice."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Run:
    """`is_closed`: finished, its summary stored; only a retry changes it. `total` is 0 until it is planned.

    `is_closing`: it is running, everything is recorded, and it only waits for its figures, without a slot.
    With a `decision` it stopped early: not everything is recorded.
    `phase` is a text for people.

    `planned_epoch` is the latest epoch whose shards are stored, 0 while there is none. `suite_version` is
    that of a user's suite, resolved when the run was submitted. `ran_seconds` is the time in earlier slots of
    this epoch, `earlier_seconds` that in earlier epochs; the present slot began at `admitted_at`. A run with
    a completion window fails at `expires_at`, also while it waits.
    """

    run_id: RunId
    order: RunOrder
    user: str
    pool: str
    scoring_method: ScoringMethod
    created_at: datetime
    state: RunState = RunState.PENDING
    # Counts from 1: a `planned_epoch` of 0 stays free for a run that was never planned.
    epoch: int = 1
    phase: str = ""
    planned_epoch: int = 0
    is_closed: bool = False
    total: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    deadline: datetime | None = None
    error: RunError | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    final_counts: RunCounts | None = None
    suite_version: int = 0
    price: ModelPrice | None = None
    reused_answers: int = 0
    admitted_at: datetime | None = None
    ran_seconds: float = 0.0
    dataset_name: str = ""
    expires_at: datetime | None = None
    is_closing: bool = False
    earlier_seconds: float = 0.0
    labels: RunLabels = field(default_factory=RunLabels)
    decision: Decision | None = None
    archive_state: ArchiveState | None = None

    @property
    def needs_no_worker(self) -> bool:
        """It stopped early and waits for its figures: what workers still have of it is given up."""
        return self.is_closing and self.decision is not None

    @property
    def suite_name(self) -> str:
        """Its name in the catalogue of suites."""
        return (
            versioned_name(self.order.suite, self.suite_version) if self.suite_version else self.order.suite
        )

    def limited_to(self, highest: Priority) -> "Run":
        """The run with at most that priority."""
        return replace(self, order=replace(self.order, priority=self.order.priority.limited_to(highest)))

    @property
    def time_limit(self) -> timedelta | None:
        """How long it may run in all, by the limit at its admission."""
        if self.deadline is None or self.admitted_at is None:
            return None
        left = self.deadline - self.admitted_at
        return timedelta(seconds=round(left.total_seconds() + self.ran_seconds, 3))

    @property
    def is_planned(self) -> bool:
        return self.planned_epoch == self.epoch

    @property
    def display_state(self) -> str:
        """The state for sentences: the run is …."""
        return CLOSING if self.is_closing else self.state


def deadline_error(run: Run, now: datetime) -> RunError | None:
    """Why the run fails now, if it does. A window closes over a run that waits as over one that runs."""
    # A window replaces the time limit of a run, so only one of the two can fail it.
    due = run.expires_at or run.deadline
    if due is None or now < due:
        return None
    limit, retry = (
        _completion_window(run) if run.expires_at else (f"{run.time_limit} (hours:minutes:seconds)", "asks")
    )
    what = f"Resource limits exceeded (time): the run took longer than {limit}"
    return RunError("DEADLINE_REACHED", f"{what}. What was recorded stays; a retry {retry} the rest.")


def _completion_window(run: Run) -> tuple[str, str]:
    seconds = run.order.completion_window_seconds
    length = f" of {timedelta(seconds=seconds)} (hours:minutes:seconds)" if seconds else ""
    return f"its completion window{length}, waiting included", "opens a new window and asks"


@dataclass(frozen=True, slots=True)
class RunFinish:
    """How a run finishes; `counts` are known once results has closed it."""

    state: RunState
    now: datetime
    error: RunError | None = None
    counts: RunCounts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """Its samples have the run's numbers `first_sample` up to `first_sample + sample_count`.

    Until they are stored it has no sample set and no place among the others.
    """

    task: str
    version: str
    sample_set_id: str = ""
    first_sample: int = 0
    sample_count: int = 0
    output_type: OutputType
    num_fewshot: int = 0
    is_stand_in: bool = False
    is_of_rollouts: bool = False
    row_source: str
    row_source_revision: str
    generation: Generation | None = None

    @property
    def samples(self) -> range:
        return range(self.first_sample, self.first_sample + self.sample_count)

    @property
    def stop(self) -> tuple[str, ...]:
        return self.generation.until if self.generation else ()


def artifacts_prefix(run_id: RunId) -> str:
    """Returns the prefix, in the object store, of what workers store of its rollouts."""
    return f"runs/{run_id}"
