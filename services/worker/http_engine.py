"""The engine of every provider that generates by an API of its own and weighs no given text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from services.worker import engine


class ProviderApi(Protocol):
    """What differs from provider to provider."""

    @property
    def name(self) -> str:
        """As people write it, in sentences."""

    async def answer(
        self, model: str, prompt: engine.Prompt, sampling: engine.Sampling
    ) -> engine.Generated: ...

    async def list_models(self) -> tuple[engine.ModelInfo, ...]: ...

    def facts(self) -> Mapping[str, str]: ...

    async def close(self) -> None: ...


class HttpEngine:
    def __init__(self, api: ProviderApi) -> None:
        self._api = api

    @property
    def loaded_model(self) -> str | None:
        """The provider has all its models at hand, so none is loaded more than another."""
        return None

    async def load(self, model: str) -> None:
        """Nothing to do: an unknown model is refused when it is asked."""

    async def generate(
        self, model: str, prompt: engine.Prompt, sampling: engine.Sampling
    ) -> engine.Generated:
        return await self._api.answer(model, prompt, sampling)

    async def score_choices(
        self,
        model: str,  # noqa: ARG002 - the same for every model
        prompt: engine.Prompt,  # noqa: ARG002
        choices: Sequence[str],  # noqa: ARG002
        *,
        truncate_left: bool,  # noqa: ARG002
    ) -> engine.ScoredChoices:
        raise engine.UnsupportedRequest(
            f"{self._api.name} scores no given text; order the task as generation instead."
        )

    async def list_models(self) -> tuple[engine.ModelInfo, ...]:
        return await self._api.list_models()

    def load_now(self) -> engine.EngineLoad | None:
        return None

    async def describe(self) -> Mapping[str, str]:
        return self._api.facts()

    async def close(self) -> None:
        await self._api.close()
