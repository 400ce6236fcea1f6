"""Prices of models by name or by the beginning of a name, and the price of an order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proctor.values.usage import ModelPrice
from services.scheduler.pricing.errors import NoPrice, NoPriceElsewhere

# At the end of a pattern it stands for any rest of the name.
ANY_REST = "*"


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by "provider/name", or "provider/na*" for all models that begin so."""

    prices: Mapping[str, ModelPrice] = field(default_factory=dict)

    def price_of(self, model: str) -> ModelPrice | None:
        """The model's own price, else that of the longest pattern."""
        if model in self.prices:
            return self.prices[model]
        fitting = [
            name
            for name in self.prices
            if name.endswith(ANY_REST) and model.startswith(name.removesuffix(ANY_REST))
        ]
        return self.prices[max(fitting, key=len)] if fitting else None


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
