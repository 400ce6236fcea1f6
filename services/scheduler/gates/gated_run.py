"""A run that is over and is to be compared to its base, and what was decided of it."""

from dataclasses import dataclass

from proctor.values.comparison import GateVerdict
from proctor.values.run import RunState
from services.scheduler.runs.orders.run_gate import RunGate


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRun:
    """`state` is None where the run was deleted; `base_run_id` "" without one."""

    run_id: str
    name: str
    user: str
    project_id: int
    model: str
    gate: RunGate
    state: RunState | None
    base_run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """`is_drop`: the run is significantly worse than the base, by however little."""

    text: str
    verdict: GateVerdict | None = None
    base_run_id: str = ""
    is_drop: bool = False
