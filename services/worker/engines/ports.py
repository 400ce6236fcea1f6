"""The port by which models are asked."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from proctor.values.providers.models import ModelInfo
from proctor.values.providers.worker import EngineLoad
from proctor.values.sample import Prompt
from services.worker.engines.engine import EngineResponse, Sampling


class Engine(Protocol):
    """Cancelling a task that awaits an answer aborts the request at the engine."""

    @property
    def loaded_model(self) -> str | None: ...

    @property
    def gpus(self) -> int:
        """GPUs that the loaded engine uses; 0 without any, and where it runs elsewhere."""

    async def load(self, model: str) -> None:
        """Starts with the model or switches to it; does nothing where it is loaded already."""

    async def generate(self, model: str, prompt: Prompt, sampling: Sampling) -> EngineResponse: ...

    async def score_choices(
        self, model: str, prompt: Prompt, choices: Sequence[str], *, ending: str = "", truncate_left: bool
    ) -> EngineResponse:
        """The log-likelihood of each choice as a continuation of the prompt, in the given order.

        A single choice after an empty prompt is a whole text, scored in windows where the context is shorter.
        With an `ending`, that of the end which all choices have, after the prompt and the rest of the choice.
        """

    async def list_models(self) -> tuple[ModelInfo, ...]: ...

    def current_load(self) -> EngineLoad | None:
        """None where the engine runs elsewhere."""

    async def describe(self) -> Mapping[str, str]:
        """Engine, version, hardware: what a run stores so that it can be repeated."""

    async def close(self) -> None: ...
