"""Resolves the price of an order."""

from dataclasses import dataclass
from typing import Protocol

from proctor.values.usage import ModelPrice
from services.scheduler.pricing.errors import NoPrice, NoPriceElsewhere


class Prices(Protocol):
    """The prices that hold now."""

    def price_of(self, model: str) -> ModelPrice | None: ...


@dataclass(frozen=True, slots=True)
class ResolvePrice:
    prices: Prices

    def price_of(self, model: str, base_url: str, max_cost: float | None) -> ModelPrice | None:
        """None if the price is unknown, as on a server that an order names by its `base_url`.

        Raises `NoPrice` or `NoPriceElsewhere` if there is a `max_cost` then.
        """
        price = None if base_url else self.prices.price_of(model)
        if price is None and max_cost is not None:
            if base_url:
                raise NoPriceElsewhere(base_url=base_url)
            raise NoPrice(model=model)
        return price
