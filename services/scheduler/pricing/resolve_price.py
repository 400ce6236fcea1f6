"""Resolves the price of a model when a run is ordered."""

from dataclasses import dataclass
from typing import Protocol

from services.scheduler.pricing.errors import NoPrice, NoPriceElsewhere
from services.scheduler.runs.model_price import ModelPrice
from services.scheduler.runs.orders.run_order import RunOrder


class Prices(Protocol):
    """What models cost now."""

    def price_of(self, model: str) -> ModelPrice | None: ...


@dataclass(frozen=True)
class ResolvePrice:
    prices: Prices

    def price_of(self, order: RunOrder) -> ModelPrice | None:
        """None where it is unknown, as on a server that the order names. A cost limit needs one."""
        price = None if order.base_url else self.prices.price_of(order.model)
        if price is None and order.max_cost is not None:
            if order.base_url:
                raise NoPriceElsewhere(base_url=order.base_url)
            raise NoPrice(model=order.model)
        return price
