"""A GPU pool of a cluster in simulated time: KEDA, the HPA, nodes that take minutes, and models that load."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

STEP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ScaledObjectSpec:
    """The spec of a ScaledObject as the chart renders it."""

    min_replicas: int = 0
    max_replicas: int = 8
    cooldown_seconds: int = 300
    polling_seconds: int = 15


@dataclass
class FakeAutoscaler:
    """KEDA for 0 to 1 and back, and the HPA between, by their published algorithms.

    https://keda.sh/docs/latest/concepts/scaling-deployments/ and
    https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#algorithm-details: an
    AverageValue target of 1 makes ceil(value) replicas unless that is within 10 % of those there; the highest
    recommendation of the stabilization window counts for scaling down.
    """

    spec: ScaledObjectSpec
    # The metric; None while the scaler is unavailable.
    value: Callable[[], float | None]
    replicas: int = 0
    _last_active: float = field(default=float("-inf"), init=False)
    _recommended: deque[tuple[float, int]] = field(default_factory=deque, init=False)

    def push(self) -> None:
        """StreamIsActive has sent true."""
        self.replicas = max(self.replicas, 1)

    def poll(self, now: float) -> None:
        """KEDA's loop."""
        value = self.value()
        if value is None:
            return
        if value > 0:
            self._last_active = now
            self.replicas = max(self.replicas, 1)
        elif self.replicas > self.spec.min_replicas and now - self._last_active >= self.spec.cooldown_seconds:
            self.replicas = self.spec.min_replicas

    def sync(self, now: float) -> None:
        """The HPA's loop, every 15 s. It does nothing while there are no replicas."""
        value = self.value()
        if value is None or not self.replicas:
            return
        ratio = value / self.replicas
        wanted = self.replicas if abs(ratio - 1) <= 0.1 else math.ceil(value)
        wanted = min(max(wanted, self.spec.min_replicas, 1), self.spec.max_replicas)
        self._recommended.append((now, wanted))
        while self._recommended[0][0] < now - self.spec.cooldown_seconds:
            self._recommended.popleft()
        stabilized = max(replicas for _, replicas in self._recommended)
        self.replicas = max(wanted, min(stabilized, self.replicas))


@dataclass
class SimulatedWorker:
    """Its pod waits for a node, then its model loads, then it works."""

    ready_at: float
    loading_from: float
    worked_seconds: float = 0.0


@dataclass
class SimulatedRun:
    arrived_at: float
    samples: float
    left: float = field(init=False)
    finished_at: float | None = None

    def __post_init__(self) -> None:
        self.left = self.samples


@dataclass
class SimulatedPool:
    """Workers of equal speed share the runs that have a slot."""

    node_seconds: float
    load_seconds: float
    samples_per_second: float
    concurrency: int
    slots: int
    workers: list[SimulatedWorker] = field(default_factory=list)
    runs: list[SimulatedRun] = field(default_factory=list)
    gpu_seconds: float = 0.0
    # Removed before they did any work.
    wasted_workers: int = 0
    history: list[int] = field(default_factory=list)

    def running(self, now: float) -> list[SimulatedRun]:
        waiting = [run for run in self.runs if run.arrived_at <= now and run.finished_at is None]
        return waiting[: self.slots]

    def ready(self, now: float) -> list[SimulatedWorker]:
        return [worker for worker in self.workers if worker.ready_at <= now]

    def resize(self, replicas: int, now: float) -> None:
        """The ReplicaSet takes away those first that are not ready."""
        while len(self.workers) > replicas:
            worker = max(self.workers, key=lambda each: each.ready_at)
            self.workers.remove(worker)
            self.wasted_workers += worker.worked_seconds == 0
        while len(self.workers) < replicas:
            loading = now + self.node_seconds
            self.workers.append(SimulatedWorker(loading + self.load_seconds, loading))

    def lose(self, share: float) -> None:
        """Spot nodes vanish with the oldest workers."""
        self.workers = self.workers[math.ceil(share * len(self.workers)) :]

    def work(self, now: float) -> None:
        """One step."""
        ready, running = self.ready(now), self.running(now)
        self.gpu_seconds += STEP_SECONDS * sum(worker.loading_from <= now for worker in self.workers)
        can = self.samples_per_second * STEP_SECONDS * len(ready)
        for run in running:
            done = min(run.left, can / len(running))
            run.left -= done
            if run.left <= 1e-9:
                run.finished_at = now + STEP_SECONDS
        for worker in ready:
            worker.worked_seconds += STEP_SECONDS if running else 0
        self.history.append(len(self.workers))

    @property
    def reversals(self) -> int:
        """How often the number of workers went from growing to shrinking or back."""
        steps = [after - before for before, after in pairwise(self.history) if after != before]
        return sum((one > 0) != (other > 0) for one, other in pairwise(steps))
