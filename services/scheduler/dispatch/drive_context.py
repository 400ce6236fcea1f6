"""What all drivers of a process share: use cases, adapters and timings."""

from dataclasses import dataclass, field

from services.common.clock import Clock
from services.scheduler.dispatch.dispatch_shards import DispatchShards
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.planning.plan_retry import PlanRetry
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.lifecycle.ports import RunControls, RunStore
from services.scheduler.workers.ports import WorkerRegistry


@dataclass(frozen=True, slots=True)
class DriverTimings:
    """After `quiet_seconds` without progress a run is searched for lost messages; sooner if it is suspected.

    `row_seconds` is how long a run's row is believed, `refresh_seconds` how often its state is stored for
    workers again. A run that fails `unexpected_failures` times for unknown reasons is given up.
    """

    quiet_seconds: float = 3.0
    suspicious_seconds: float = 1.0
    outcomes_seconds: float = 5.0
    row_seconds: float = 0.25
    refresh_seconds: float = 5.0
    unexpected_failures: int = 10


@dataclass(frozen=True)
class DriverContext:
    runs: RunStore
    planner: PlanRun
    retry_planner: PlanRetry
    dispatcher: DispatchShards
    reconciler: ReconcileShards
    finisher: FinishRun
    controls: RunControls
    registry: WorkerRegistry
    tracker: ProgressTracker
    clock: Clock
    timings: DriverTimings = field(default_factory=DriverTimings)
