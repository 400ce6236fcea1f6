"""The engine of providers with an API of their own that only generate, and what their APIs share."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from proctor.values.providers import EngineLoad, ModelInfo
from proctor.values.sample import Prompt
from services.worker.engines import engine
from services.worker.engines.engine import Generated

# One more than is listed of a pool, so that the listing notices that some are left out.
_ENOUGH_MODELS = 2001
_MOST_PAGES = 100
# Takes the name of a page, empty for the first; returns its models and the next name, empty after the last.
ReadPage = Callable[[str], Awaitable[tuple[Iterable[ModelInfo], str]]]


def cut_at_stops(generated: Generated, stops: Sequence[str]) -> Generated:
    """The text up to the first stop sequence; the tokens after it stay counted."""
    found = [at for stop in stops if stop and (at := generated.text.find(stop)) >= 0]
    if not found:
        return generated
    return replace(generated, text=generated.text[: min(found)], finish_reason="stop")


async def read_pages(read_page: ReadPage) -> tuple[ModelInfo, ...]:
    """All pages, up to a limit, and none twice."""
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
    """What differs between providers."""

    @property
    def name(self) -> str:
        """The provider's name in sentences."""

    async def answer(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.Generated: ...

    async def list_models(self) -> tuple[ModelInfo, ...]: ...

    def facts(self) -> Mapping[str, str]: ...

    async def close(self) -> None: ...


class HttpEngine:
    def __init__(self, api: ProviderApi) -> None:
        self._api = api

    @property
    def loaded_model(self) -> str | None:
        """None: the provider loads models by itself."""
        return None

    async def load(self, model: str) -> None:
        """Does nothing: an unknown model is refused by its first request."""

    async def generate(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.Generated:
        return await self._api.answer(model, prompt, sampling)

    async def score_choices(
        self,
        model: str,  # noqa: ARG002 - the same for every model
        prompt: Prompt,  # noqa: ARG002
        choices: Sequence[str],  # noqa: ARG002
        *,
        truncate_left: bool,  # noqa: ARG002
    ) -> engine.ScoredChoices:
        raise engine.UnsupportedRequest(
            f"{self._api.name} scores no given text; order the task as generation instead."
        )

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return await self._api.list_models()

    def current_load(self) -> EngineLoad | None:
        return None

    async def describe(self) -> Mapping[str, str]:
        return self._api.facts()

    async def close(self) -> None:
        await self._api.close()
