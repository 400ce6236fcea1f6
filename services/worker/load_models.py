"""Which model of the pool the engine has, which comes next, and which it cannot load."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.worker.engine import Engine, ModelCannotLoad

log = get_logger()

_TRIES_OF_SERVED = 3


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    at: float


class ModelLoader:
    """A pool without a list serves any model of its provider; nothing is loaded for it."""

    def __init__(self, engine: Engine, models: tuple[str, ...], clock: Clock, retry_seconds: float) -> None:
        self.models = models
        self.is_loading = False
        self.environment: dict[str, str] = {}
        self._engine = engine
        self._clock = clock
        self._retry_seconds = retry_seconds
        self._refusals: dict[str, _Refusal] = {}
        self._served: set[str] = set()

    @property
    def serves_any(self) -> bool:
        return not self.models

    @property
    def loaded_model(self) -> str | None:
        return self._engine.loaded_model

    @property
    def cannot_load(self) -> dict[str, str]:
        """Model to the engine's own reason; forgotten after a while, when loading is worth another try."""
        oldest = self._clock.monotonic() - self._retry_seconds
        self._refusals = {model: no for model, no in self._refusals.items() if no.at > oldest}
        return {model: refusal.reason for model, refusal in self._refusals.items()}

    def may_load(self, model: str) -> bool:
        return model not in self.cannot_load

    async def load(self, model: str) -> bool:
        """Whether the engine has the model now; started again where it died."""
        self.is_loading = True
        try:
            refusal = await self._refusal_of(model)
        finally:
            self.is_loading = False
        if refusal is not None:
            self._refusals[model] = _Refusal(str(refusal), self._clock.monotonic())
            return False
        self._refusals.pop(model, None)
        self._served.add(model)
        await self.describe()
        return True

    async def _refusal_of(self, model: str) -> ModelCannotLoad | None:
        """A model that was served is no bad model: a dead engine may only not have left its memory yet."""
        refusal: ModelCannotLoad | None = None
        for _ in range(_TRIES_OF_SERVED if model in self._served else 1):
            try:
                await self._engine.load(model)
            except ModelCannotLoad as error:
                log.warning("model cannot be loaded", model=model, reason=str(error))
                refusal = error
            else:
                return None
        return refusal

    async def describe(self) -> None:
        """Asks the engine for what a run stores to be repeatable."""
        self.environment = dict(await self._engine.describe())
