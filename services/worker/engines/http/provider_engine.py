"""The engine of providers with an API of their own that only generate, and what their APIs share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from services.worker.engines import engine
from services.worker.engines.engine import Generated, ModelInfo


def cut_at_stops(generated: Generated, stops: Sequence[str]) -> Generated:
    """Up to the first of the stop sequences, without it; what was generated after it stays counted."""
    found = [at for stop in stops if stop and (at := generated.text.find(stop)) >= 0]
    if not found:
        return generated
    return replace(generated, text=generated.text[: min(found)], finish_reason="stop")


# More than are listed of a pool, so that it is told that some are left out.
_ENOUGH_MODELS = 2001
_MOST_PAGES = 100

# Of the name of a page, empty for the first: its models and the name of the next, empty after the last.
ReadPage = Callable[[str], Awaitable[tuple[Iterable[ModelInfo], str]]]


async def read_pages(read_page: ReadPage) -> tuple[ModelInfo, ...]:
    """All pages, unless the server goes in circles or finds no end."""
    models: list[ModelInfo] = []
    page, known = "", {""}
    while len(known) <= _MOST_PAGES and len(models) < _ENOUGH_MODELS:
        listed, page = await read_page(page)
        models += listed
        if page in known:
            break
        known.add(page)
    return tuple(models)


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
