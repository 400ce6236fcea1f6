"""A run's price is settled when it is ordered, and what it will cost is told from runs that have ended."""

from dataclasses import dataclass

from services.scheduler.prices.errors import NoPrice, NoPriceElsewhere
from services.scheduler.prices.ports import Prices
from services.scheduler.runs.model_price import ModelPrice
from services.scheduler.runs.orders.run_order import RunOrder


@dataclass(frozen=True)
class SettlePrice:
    prices: Prices

    def price_of(self, order: RunOrder) -> ModelPrice | None:
        """None where it is unknown, as on a server that the order names. A cost limit needs one."""
        price = None if order.base_url else self.prices.price_of(order.model)
        if price is None and order.max_cost is not None:
            if order.base_url:
                raise NoPriceElsewhere(base_url=order.base_url)
            raise NoPrice(model=order.model)
        return price
