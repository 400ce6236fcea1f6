"""The engine of every server behind HTTP, and what the APIs of providers share."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from proctor.values.outcome import Answer
from proctor.values.providers.models import ModelInfo
from proctor.values.sample import Prompt
from services.worker.engines.engine import EngineResponse, Sampling
from services.worker.engines.errors import EngineFailure, RequestRefused, UnsupportedRequest
from services.worker.engines.http.client import HttpClient
from services.worker.engines.http.ports import ProviderApi, Request
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.responses import HttpResponse
from services.worker.engines.http.server import Endpoint, Server

# One more than is listed of a pool, so that the listing notices that some are left out.
_ENOUGH_MODELS = 2001
# An end for a server that always names a further page.
_MAX_PAGES = 100
# Takes the name of a page, empty for the first; returns its models and the next name, empty after the last.
ReadPage = Callable[[str], Awaitable[tuple[Iterable[ModelInfo], str]]]


class HttpEngine:
    """It sends once, and once more in another form that a refusal teaches; callers try again after failures.

    The server loads models by itself.
    """

    loaded_model: str | None = None
    gpus = 0

    def __init__(self, api: ProviderApi, endpoint: Endpoint) -> None:
        self._api = api
        self._endpoint = endpoint
        server = Server(endpoint, api.dialect)
        self._http, self._queries = HttpClient(server), QueryClient(server)

    async def load(self, model: str) -> None:
        """Does nothing: an unknown model is refused by its first request."""

    async def generate(self, model: str, prompt: Prompt, sampling: Sampling) -> EngineResponse:
        name = self._endpoint.server_model(model)
        request = self._api.generation(name, prompt, sampling)
        try:
            return self._read(request, await self._http.send(request.path, request.body, request.stream))
        except RequestRefused as refusal:
            if request.learn is None or not request.learn(refusal):
                raise
        return await self._send(self._api.generation(name, prompt, sampling))

    async def score_choices(
        self,
        model: str,
        prompt: Prompt,
        choices: Sequence[str],
        *,
        ending: str = "",
        truncate_left: bool,  # noqa: ARG002  # only the server could cut a prompt in tokens
    ) -> EngineResponse:
        """One request for all choices."""
        return await self._send(
            self._api.scoring(self._endpoint.server_model(model), prompt, choices, ending)
        )

    async def _send(self, request: Request) -> EngineResponse:
        return self._read(request, await self._http.send(request.path, request.body, request.stream))

    def _read(self, request: Request, response: HttpResponse) -> EngineResponse:
        try:
            answer, usage = request.read(response.document)
        except EngineFailure as failure:
            failure.usage = self._api.dialect.read_usage(response.document)
            raise
        if request.cut_at:
            answer = cut_at_stops(answer, request.cut_at)
        return EngineResponse(answer, usage, response.timing(usage))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        prefix, capabilities = self._endpoint.provider, self._api.capabilities
        listed = await self._api.list_models(self._queries)
        return tuple(
            replace(each, model=f"{prefix}/{each.model}", capabilities=capabilities) for each in listed
        )

    def current_load(self) -> None:
        """None: the models run elsewhere."""

    async def describe(self) -> Mapping[str, str]:
        return {**self._endpoint.facts(), **self._api.facts}

    async def close(self) -> None:
        await self._queries.close()
        await self._http.close()


def refuse_scoring(provider: str) -> NoReturn:
    raise UnsupportedRequest(f"{provider} scores no given text; order the task as generation instead.")


def cut_at_stops(answer: Answer, stops: Sequence[str]) -> Answer:
    """The text up to the first stop sequence; the tokens after it stay counted."""
    # An empty stop would cut every answer to nothing.
    found = [at for stop in stops if stop and (at := answer.text.find(stop)) >= 0]
    if not found:
        return answer
    return replace(answer, text=answer.text[: min(found)], finish_reason="stop")


async def read_pages(read_page: ReadPage) -> tuple[ModelInfo, ...]:
    """All pages, up to a limit, and none twice."""
    models: list[ModelInfo] = []
    page, known = "", {""}
    while len(known) <= _MAX_PAGES and len(models) < _ENOUGH_MODELS:
        listed, page = await read_page(page)
        models += listed
        # A server that names a page twice would be asked for ever.
        if page in known:
            break
        known.add(page)
    return tuple(models)
