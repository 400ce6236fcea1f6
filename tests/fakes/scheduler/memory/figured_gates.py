"""Gates that are decided by one figure for each run."""

from dataclasses import dataclass, field

from proctor.values.comparison import GateVerdict
from services.common.errors import RemoteError
from services.scheduler.gates.gated_run import GateDecision
from services.scheduler.runs.orders.run_gate import RunGate


@dataclass
class FiguredGates:
    """Gates by one figure for each run, whose differences are all significant."""

    points: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    error: RemoteError | None = None

    async def decide(self, run_id: str, base_run_id: str, gate: RunGate) -> GateDecision:
        self.asked.append((run_id, base_run_id))
        if self.error:
            raise self.error
        drop = self.points.get(base_run_id, 0.0) - self.points.get(run_id, 0.0)
        verdict = GateVerdict.FAIL if drop > gate.margin_points else GateVerdict.PASS
        return GateDecision(
            text=f"Down by {drop:g}.", verdict=verdict, base_run_id=base_run_id, is_drop=drop > 0
        )
