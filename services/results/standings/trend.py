"""How a model's figure moved against its previous complete run on the same terms."""

from dataclasses import dataclass
from enum import IntEnum

from services.results.comparisons.estimate import LEVEL
from services.results.comparisons.stored_difference import StoredDifference


class TrendDirection(IntEnum):
    """The numbers are those of the contract."""

    UNSPECIFIED = 0
    UP = 1
    DOWN = 2
    STEADY = 3


@dataclass(frozen=True, slots=True)
class Trend:
    """Present minus previous; without a direction as long as the two are not compared."""

    previous_run_id: str
    direction: TrendDirection = TrendDirection.UNSPECIFIED
    difference: float | None = None
    p_value: float | None = None


def trend_of(previous_run_id: str, stored: StoredDifference | None) -> Trend | None:
    """`stored`: present minus previous. One test per model that nobody picked: no correction."""
    if not previous_run_id:
        return None
    if stored is None or stored.difference is None or stored.p_value is None:
        return Trend(previous_run_id)
    moved = TrendDirection.UP if stored.difference > 0 else TrendDirection.DOWN
    direction = moved if stored.p_value <= LEVEL else TrendDirection.STEADY
    return Trend(previous_run_id, direction, stored.difference, stored.p_value)
