"""Where prices are looked up."""

from typing import Protocol

from services.scheduler.runs.model_price import ModelPrice


class Prices(Protocol):
    """What models cost now."""

    def price_of(self, model: str) -> ModelPrice | None: ...
