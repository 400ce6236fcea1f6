"""Each native engine with the fake of its provider, so that one test says what holds for all of them."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from aiohttp import web

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.anthropic.api import AnthropicApi
from services.worker.engines.gemini.api import GeminiApi
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.ollama.api import OllamaApi
from services.worker.engines.ports import Engine
from tests.fakes.providers import anthropic_server, gemini_server, ollama_server
from tests.fakes.providers.provider_server import SECRET, ErrorResponse, Json, ProviderServer, serving

SAMPLING = engine.Sampling(max_tokens=16)


@dataclass(frozen=True, slots=True)
class Native:
    """`error` makes an error of a status in the provider's shape, `said` an answer of it."""

    name: str
    make: Callable[[Endpoint], Engine]
    routes: Sequence[web.RouteDef]
    error: Callable[[int, str], ErrorResponse]
    said: Callable[[str], Json]
    thought: Callable[[str, str], Json]


OLLAMA = Native(
    "ollama",
    lambda endpoint: HttpEngine(OllamaApi(), endpoint),
    ollama_server.ROUTES,
    ollama_server.error,
    ollama_server.chat_answer,
    lambda text, thinking: ollama_server.chat_answer(text, thinking=thinking),
)
GEMINI = Native(
    "gemini",
    lambda endpoint: HttpEngine(GeminiApi(), endpoint),
    gemini_server.ROUTES,
    lambda status, message: gemini_server.error(status, "UNKNOWN", message),
    gemini_server.answer,
    lambda text, thinking: gemini_server.answer(text, thought=thinking),
)
ANTHROPIC = Native(
    "anthropic",
    lambda endpoint: HttpEngine(AnthropicApi(), endpoint),
    anthropic_server.ROUTES,
    lambda status, message: anthropic_server.error(status, "api_error", message),
    anthropic_server.message,
    lambda text, thinking: anthropic_server.message(text, thinking=thinking),
)


@dataclass(slots=True)
class NativeStand:
    """The engine `asked`, which asks a fake; `endpoint` is where."""

    native: Native
    server: ProviderServer
    endpoint: Endpoint
    asked: Engine

    @property
    def model(self) -> str:
        return f"{self.native.name}/fake"

    async def ask(
        self, question: str = "What follows? KEY=seven", sampling: engine.Sampling = SAMPLING
    ) -> engine.EngineResponse:
        return await self.asked.generate(self.model, chat(question), sampling)

    @asynccontextmanager
    async def other_engine(
        self, *, api_key: str | None = SECRET, timeout_seconds: float = 5.0
    ) -> AsyncIterator[Engine]:
        made = self.native.make(replace(self.endpoint, api_key=api_key, timeout_seconds=timeout_seconds))
        yield made
        await made.close()


def chat(question: str) -> Prompt:
    return Prompt(messages=(ChatMessage("user", question),))


@asynccontextmanager
async def native_stand(native: Native) -> AsyncIterator[NativeStand]:
    server = ProviderServer()
    async with serving(server, native.routes) as address:
        variable = f"{native.name.upper()}_API_KEY"
        endpoint = Endpoint(address, native.name, SECRET, variable, timeout_seconds=5.0)
        made = native.make(endpoint)
        yield NativeStand(native, server, endpoint, made)
        await made.close()
