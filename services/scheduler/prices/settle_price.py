"""A run's price is settled when it is ordered, and what it will cost is told from runs that have ended."""

from dataclasses import dataclass

from services.scheduler import errors
from services.scheduler.ports import Prices, RunStore
from services.scheduler.prices.cost_estimate import estimated_cost
from services.scheduler.runs.model_price import ModelPrice
from services.scheduler.runs.run import Run
from services.scheduler.runs.run_order import RunOrder


@dataclass(frozen=True)
class SettlePrice:
    prices: Prices
    runs: RunStore

    def price_of(self, order: RunOrder) -> ModelPrice | None:
        """None where it is unknown, as on a server that the order names. A cost limit needs one."""
        price = None if order.base_url else self.prices.price_of(order.model)
        if price is None and order.max_cost is not None:
            if order.base_url:
                raise errors.NoPriceElsewhere(base_url=order.base_url)
            raise errors.NoPrice(model=order.model)
        return price

    async def estimate(self, run: Run) -> float | None:
        """None without a price, or without an earlier run to tell from."""
        if run.price is None:
            return None
        return estimated_cost(run.order, run.price, await self.runs.past_usage(run))
