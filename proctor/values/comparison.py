"""Conclusions from a comparison of two runs."""

from proctor.values.contract_enum import ContractEnum


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
