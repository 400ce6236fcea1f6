"""Prices of models by name or by the beginning of a name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.usage import ModelPrice

# At the end of a pattern it stands for any rest of the name.
ANY_REST = "*"
Prices = Mapping[str, ModelPrice]


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by "provider/name", or "provider/na*" for all models that begin so.

    `shipped` are what providers ask at their own servers: another server may ask anything for a model of the
    same name. They hold where `prices` has none.
    """

    prices: Prices = field(default_factory=dict)
    shipped: Prices = field(default_factory=dict)

    def price_of(self, model: str, *, at_provider: bool = False) -> ModelPrice | None:
        """`at_provider`: the provider's own server is asked."""
        return _price_in(self.prices, model) or (_price_in(self.shipped, model) if at_provider else None)


def _price_in(prices: Prices, model: str) -> ModelPrice | None:
    """The model's own price, else that of the longest pattern."""
    if model in prices:
        return prices[model]
    fitting = [
        name for name in prices if name.endswith(ANY_REST) and model.startswith(name.removesuffix(ANY_REST))
    ]
    return prices[max(fitting, key=len)] if fitting else None
