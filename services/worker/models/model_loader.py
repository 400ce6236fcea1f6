"""Which models of the pool the engine serves now, which comes next, and which it cannot load."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from proctor.values.providers.worker import EngineLoad
from services.common.clock import Clock
from services.common.process import release
from services.common.structured_logs import get_logger
from services.worker.engines.errors import ModelCannotLoad
from services.worker.engines.ports import Engine
from services.worker.metrics import LOAD_SECONDS, LOADING

log = get_logger()

# The kernel frees the memory of a dead engine's GPU within seconds.
_TRIES_OF_SERVED = 3


@dataclass(slots=True)
class ModelLoader:
    """Models of a group share an engine. Without groups the pool serves any model of its provider."""

    engine: Engine
    groups: Sequence[Sequence[str]]
    clock: Clock
    retry_seconds: float
    is_loading: bool = field(default=False, init=False)
    # The model that the worker has selected and does not serve yet.
    switching_to: str | None = field(default=None, init=False)
    environment: dict[str, str] = field(default_factory=dict, init=False)
    # Model to the engine's reason, and when it was refused.
    _refusals: dict[str, tuple[str, float]] = field(default_factory=dict, init=False)
    _served: set[str] = field(default_factory=set, init=False)
    _ready: tuple[str, ...] = field(default=(), init=False)
    _ready_since: float = field(init=False)

    def __post_init__(self) -> None:
        self._ready_since = self.clock.monotonic()

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for group in self.groups for model in group)

    @property
    def serves_any(self) -> bool:
        return not self.models

    @property
    def loaded_model(self) -> str | None:
        return self.engine.loaded_model

    @property
    def engine_load(self) -> EngineLoad | None:
        return self.engine.current_load()

    @property
    def engine_gpus(self) -> int:
        return self.engine.gpus

    @property
    def ready_models(self) -> tuple[str, ...]:
        """The loaded model and those that share its engine: what can be served without a model switch."""
        return self._ready if self.engine.loaded_model else ()

    @property
    def residency_seconds(self) -> float:
        """How long the engine has served this group."""
        return self.clock.monotonic() - self._ready_since

    @property
    def cannot_load(self) -> dict[str, str]:
        """Model to the engine's own reason; forgotten after a while, when loading is worth another try."""
        oldest = self.clock.monotonic() - self.retry_seconds
        self._refusals = {model: refusal for model, refusal in self._refusals.items() if refusal[1] > oldest}
        return {model: reason for model, (reason, _) in self._refusals.items()}

    def may_load(self, model: str) -> bool:
        return model not in self.cannot_load

    async def load(self, model: str) -> bool:
        """Whether the engine serves the model now, or others of its group; a dead engine is restarted."""
        self.is_loading, self.switching_to = True, model
        began = self.clock.monotonic()
        try:
            with LOADING.track_inprogress():
                loaded = await self._load_group(model)
        finally:
            self.is_loading, self.switching_to = False, None
        LOAD_SECONDS.labels("loaded" if loaded else "refused").observe(self.clock.monotonic() - began)
        # A model that is loaded anew after its engine died keeps its residency.
        if not set(loaded) & set(self._ready):
            self._ready_since = self.clock.monotonic()
        self._ready = loaded
        if loaded:
            await self.describe()
        return bool(loaded)

    async def describe(self) -> None:
        """Reads from the engine what a run stores so that it can be repeated."""
        self.environment = {"release": release(), **await self.engine.describe()}

    async def _load_group(self, model: str) -> tuple[str, ...]:
        """Models of the group that are ready. An engine that does not start for one starts for none."""
        group = next((group for group in self.groups if model in group), (model,))
        wanted = (model, *(other for other in group if other != model and self.may_load(other)))
        loaded: list[str] = []
        for each in wanted:
            refusal = await self._load_one(each)
            if refusal is None:
                self._refusals.pop(each, None)
                self._served.add(each)
                loaded.append(each)
                continue
            is_down = self.engine.loaded_model is None
            for refused in wanted if is_down else (each,):
                self._refusals[refused] = (str(refusal), self.clock.monotonic())
            if is_down:
                return ()
        return tuple(loaded)

    async def _load_one(self, model: str) -> ModelCannotLoad | None:
        """None where it is loaded. Retries a model served before: a dead engine may still hold its memory."""
        refusal: ModelCannotLoad | None = None
        for _ in range(_TRIES_OF_SERVED if model in self._served else 1):
            try:
                await self.engine.load(model)
            except ModelCannotLoad as error:
                log.warning("model cannot be loaded", model=model, reason=str(error))
                refusal = error
            else:
                return None
        return refusal
