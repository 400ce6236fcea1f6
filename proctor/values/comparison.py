"""What a comparison of two runs shows."""

from proctor.values.contract_enum import ContractEnum


class Verdict(ContractEnum):
    """What the difference of two runs proves; UNDEFINED where no figure can be made."""

    FIRST_BETTER = "first_better", 1
    SECOND_BETTER = "second_better", 2
    NOT_SHOWN = "not_shown", 3
    UNDEFINED = "undefined", 4


class TrendDirection(ContractEnum):
    """How a model's figure moved against its previous run, by the paired test."""

    UP = "up", 1
    DOWN = "down", 2
    STEADY = "steady", 3
