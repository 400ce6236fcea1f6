"""What a run will cost, told from the tokens of runs of the same suite that have ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from services.scheduler.runs.admission.run_estimate import PastRun, expected_outcomes
from services.scheduler.runs.model_price import ModelPrice, TokenUsage
from services.scheduler.runs.orders.run_order import RunOrder


@dataclass(frozen=True, slots=True)
class PastUsage:
    """A completed run and all its tokens."""

    run: PastRun
    usage: TokenUsage


def estimated_cost(order: RunOrder, price: ModelPrice, history: Sequence[PastUsage]) -> float | None:
    """The cost of an outcome by this price × the outcomes of the order, of the same tasks if they ran.

    The median of the runs: one whose server counted oddly does not speak for all.
    None where nothing tells how many outcomes there will be, or how many tokens one has.
    """
    counted = [past for past in history if past.run.total and past.usage != TokenUsage()]
    outcomes = expected_outcomes(order, [past.run for past in counted])
    if outcomes is None or not counted:
        return None
    same = [past for past in counted if set(past.run.tasks) == set(order.tasks)] or counted
    return outcomes * median(price.cost(past.usage) / past.run.total for past in same)
