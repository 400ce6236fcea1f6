"""How many runs are compared at a time, and conclusions from a comparison of two."""

from proctor.values.contract_enum import ContractEnum

# Runs that are compared, or shown side by side, at a time: 15 pairs. Each further one makes the
# correction over all of them stricter.
MIN_COMPARED, MAX_COMPARED = 2, 6


class Verdict(ContractEnum):
    """The conclusion from the difference of two runs; UNDEFINED where no figure can be computed."""

    FIRST_BETTER = "first_better", 1
    SECOND_BETTER = "second_better", 2
    NOT_SHOWN = "not_shown", 3
    UNDEFINED = "undefined", 4


class TrendDirection(ContractEnum):
    """How a model's figure moved against its previous run, by the paired test."""

    UP = "up", 1
    DOWN = "down", 2
    STEADY = "steady", 3
