"""Resolves the price of an order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proctor.values.providers.pool import Pool, pool_serving
from proctor.values.providers.remote_providers import REMOTE_PROVIDERS
from proctor.values.usage import ModelPrice
from services.common.errors import DomainError, ErrorKind


class NoPrice(DomainError, kind=ErrorKind.CONFLICT, reason="NO_PRICE"):
    """No price is known of {model}, so max_cost cannot be kept. Leave max_cost out, or price the model."""


class NoPriceElsewhere(DomainError, kind=ErrorKind.CONFLICT, reason="NO_PRICE"):
    """No price is known of the server {base_url}, so max_cost cannot be kept. Leave one of the two out."""


class Prices(Protocol):
    """The prices that hold now."""

    def price_of(self, model: str, *, at_provider: bool = False) -> ModelPrice | None: ...


@dataclass(frozen=True, slots=True)
class ResolvePrice:
    prices: Prices
    pools: Sequence[Pool] = ()

    def price_of(self, model: str, base_url: str, max_cost: float | None) -> ModelPrice | None:
        """None if the price is unknown, as on a server that an order names by its `base_url`.

        Raises `NoPrice` or `NoPriceElsewhere` if there is a `max_cost` then.
        """
        price = None if base_url else self.prices.price_of(model, at_provider=self._is_at_provider(model))
        if price is None and max_cost is not None:
            if base_url:
                raise NoPriceElsewhere(base_url=base_url)
            raise NoPrice(model=model)
        return price

    def _is_at_provider(self, model: str) -> bool:
        pool = pool_serving(model, self.pools)
        known = REMOTE_PROVIDERS.get(pool.provider.name) if pool and pool.provider else None
        return known is not None and pool is not None and known.is_own(pool.base_url)
