"""How many runs are compared at a time, and conclusions from a comparison of two."""

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
