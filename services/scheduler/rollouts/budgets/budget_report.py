"""A worker's report of a rollout's used budgets."""

import math
from dataclasses import dataclass

from proctor.values.rollout import BudgetUse, is_execution
from proctor.values.run import RunId

# Maximum number of executions of a rollout in an epoch: each begins after a worker that ended, or a shard
# that was sent again.
MAX_EXECUTIONS = 64


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """`used` is that of the execution since it began; `is_left`: its worker leaves it without an outcome.

    `is_resting`: the rollout waits for its provider, without a place in its worker.
    """

    run_id: RunId
    epoch: int
    shard: int
    sample: int
    rollout: int
    execution: str
    used: BudgetUse
    is_left: bool = False
    is_resting: bool = False

    @property
    def problem(self) -> str:
        """Why it cannot be a worker's; empty where it can."""
        counts = (self.used.agent_steps, *self.used.usage.by_kind.values())
        if not is_execution(self.execution):
            return f"there is no execution {self.execution[:40]!r}."
        if min(counts) < 0 or not (self.used.seconds >= 0 and math.isfinite(self.used.seconds)):
            return "a count is below 0."
        return ""
