"""How many runs are compared at a time, and conclusions from a comparison of two."""

import hashlib
from dataclasses import dataclass

from proctor.values.contract_enum import ContractEnum

# Runs that are compared, or shown side by side, at a time: 15 pairs. Each further one makes the
# correction over all of them stricter.
MIN_COMPARED, MAX_COMPARED = 2, 6

# A point is a hundredth of a share, as pages show figures.
DEFAULT_MARGIN_POINTS = 1.0
MAX_MARGIN_POINTS = 100.0
# As large a share as the usual margin: more failures could hide a larger drop.
GATE_MAX_FAILED_SHARE = 0.01
GATE_MAX_UNPARSED_SHARE = 0.05
# The chance of a wrong decision between two runs.
DEFAULT_DECISION_ALPHA = 0.05
DEFAULT_GATE_ALPHA = 0.05
# A level of one half decides by a coin.
MAX_ALPHA = 0.5


def points_text(points: float) -> str:
    """`points` with their unit: "1 point", "0.5 points"."""
    return f"{points:g} point{'' if points == 1 else 's'}"


class Verdict(ContractEnum):
    """The conclusion from the difference of two runs; UNDEFINED where no figure can be computed."""

    FIRST_BETTER = "first_better", 1
    SECOND_BETTER = "second_better", 2
    NOT_SHOWN = "not_shown", 3
    UNDEFINED = "undefined", 4


class GateVerdict(ContractEnum):
    """Whether a run is worse than its base by more than a margin; INCONCLUSIVE where neither is shown."""

    PASS = "pass", 1
    FAIL = "fail", 2
    INCONCLUSIVE = "inconclusive", 3


class TrendDirection(ContractEnum):
    """How a model's figure moved against its previous run, by the paired test."""

    UP = "up", 1
    DOWN = "down", 2
    STEADY = "steady", 3


class DecisionVerdict(ContractEnum):
    """What is shown of the run against its base; EQUIVALENT: they differ by less than the margin."""

    BETTER = "better", 1
    WORSE = "worse", 2
    EQUIVALENT = "equivalent", 3


@dataclass(frozen=True, slots=True)
class UntilDecided:
    """Of an order: the model of the second run, and how they are decided between.

    `margin_points`: differences within it are as good as none; None: no run is ever equivalent. `alpha`: the
    chance of a wrong decision, whenever it is made. Accepted orders have the `against_run_id` of the other
    run and the `seed` of the order of samples. Of the two the base is what the run is compared with.
    """

    against_model: str
    margin_points: float | None = None
    alpha: float | None = None
    against_run_id: str = ""
    is_base: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """Of a run minus its base, over the first samples of the order that both have outcomes of.

    `difference` is the mean over the `pairs`, in shares of the range of the metric; None without a pair. It
    lies between `low` and `high` at all looks together with a probability of 1 - `alpha`. `failed`: samples
    without a pair, for which the interval takes any difference.
    """

    verdict: DecisionVerdict
    difference: float | None
    low: float
    high: float
    pairs: int
    failed: int
    alpha: float
    margin_points: float | None = None


def sample_order(seed: int, count: int) -> list[int]:
    """The numbers of samples, 0 to `count` - 1, in the random order of a seed: that of their digests."""
    return sorted(range(count), key=lambda number: hashlib.sha256(f"{seed}/{number}".encode()).digest())
