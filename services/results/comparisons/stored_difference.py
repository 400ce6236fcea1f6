"""The suite-level difference of two runs as it is kept for leaderboards and trends."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredDifference:
    """First minus second; the p-value is two-sided and not corrected. Undefined numbers are None."""

    first_run_id: str
    second_run_id: str
    metric: str
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    pairs: int
    test: str

    def reversed(self) -> "StoredDifference":
        """Second minus first."""
        return StoredDifference(
            self.second_run_id,
            self.first_run_id,
            self.metric,
            None if self.difference is None else -self.difference,
            None if self.ci_high is None else -self.ci_high,
            None if self.ci_low is None else -self.ci_low,
            self.p_value,
            self.pairs,
            self.test,
        )
