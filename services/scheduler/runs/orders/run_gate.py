"""What a run is to be compared to once it has completed, and what drop is accepted."""

import json
from dataclasses import dataclass

from proctor.values.comparison import (
    DEFAULT_GATE_ALPHA,
    DEFAULT_MARGIN_POINTS,
    MAX_ALPHA,
    MAX_MARGIN_POINTS,
)
from proctor.values.generation import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGate:
    """`base_run_id`: of a schedule empty for the run of the latest earlier time that has completed."""

    base_run_id: str = ""
    margin_points: float = DEFAULT_MARGIN_POINTS
    alpha: float = DEFAULT_GATE_ALPHA

    @property
    def problem(self) -> Problem | None:
        """Why it is refused, whatever it is of."""
        if not 0 <= self.margin_points <= MAX_MARGIN_POINTS:
            sentence = f"gate.margin_points must be 0 to {MAX_MARGIN_POINTS:g}, not {self.margin_points:g}."
            return Problem("gate.margin_points", sentence)
        if not 0 < self.alpha < MAX_ALPHA:
            sentence = f"gate.alpha must be above 0 and below {MAX_ALPHA}, not {self.alpha:g}."
            return Problem("gate.alpha", sentence)
        return None


def gate_from_json(stored: str | None) -> RunGate | None:
    return RunGate(**json.loads(stored)) if stored else None
