"""What a submitted run will cost and when it will end, estimated from runs that have ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from proctor.values.usage import ModelPrice, TokenUsage
from services.scheduler.runs.admission.run_estimate import expected_outcomes
from services.scheduler.runs.admission.show_forecast import ForecastQueue
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.runs.reads.run_list import PastUsage, RunLists


@dataclass(frozen=True, slots=True)
class RunForecast:
    """None where there is nothing to estimate from. The cost is in the currency of the run's price."""

    seconds: float | None
    cost: float | None


@dataclass(frozen=True)
class ForecastRun:
    forecasts: ForecastQueue
    runs: RunLists

    async def forecast(self, run: Run) -> RunForecast:
        return RunForecast(await self.forecasts.seconds_to_end(run), await self._cost(run))

    async def _cost(self, run: Run) -> float | None:
        if run.price is None:
            return None
        return estimated_cost(run.order, run.price, await self.runs.past_usage(run))


def estimated_cost(order: RunOrder, price: ModelPrice, history: Sequence[PastUsage]) -> float | None:
    """The expected number of outcomes × the median cost of one; of runs of the same tasks if there are any.

    The median, so that one run whose server counted wrongly does not decide. None if the number of outcomes
    or the tokens of one are unknown.
    """
    counted = [past for past in history if past.run.total and past.usage != TokenUsage()]
    outcomes = expected_outcomes(order, [past.run for past in counted])
    if outcomes is None or not counted:
        return None
    same = [past for past in counted if set(past.run.tasks) == set(order.tasks)] or counted
    return outcomes * median(price.cost(past.usage) / past.run.total for past in same)
