"""Prices of models by name or by the beginning of a name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.usage import ModelPrice

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
