"""Live lists of models over a real NATS: workers that ask fakes of providers, and who asks the workers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.values import messaging
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from services.common.clock import SystemClock
from services.common.lifecycle import cancel_all
from services.common.nats.connection import connect_nats
from services.scheduler.workers.list_models import ListingRules, ListModels, ModelSource
from services.scheduler.workers.nats import NatsModelListRequests
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from services.worker.models.list_engine_models import ListEngineModels
from services.worker.models.nats import NatsModelListAnswers
from tests.fakes.eventually import eventually
from tests.fakes.pools import provider_pool
from tests.fakes.providers import model_server
from tests.fakes.providers.model_server import Fault, ModelServer
from tests.fakes.providers.provider_server import SECRET
from tests.fakes.scheduler.surroundings import ListedWorkers
from tests.fakes.worker.provider_engines import ANTHROPIC, GEMINI, OLLAMA, NativeStand, native_stand
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.harness.servers import RunningServer, nats_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

NATIVES = {"ollama": OLLAMA, "gemini": GEMINI, "anthropic": ANTHROPIC}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats() -> AsyncIterator[RunningServer]:
    async with nats_server() as server:
        yield server


@dataclass
class Stand:
    """A scheduler's side, and what stands in for the workers of each pool."""

    connection: Client
    opened: AsyncExitStack

    async def worker(self, pool: str, lister: ListEngineModels) -> None:
        answering = asyncio.create_task(NatsModelListAnswers(self.connection, pool, lister).answer())
        self.opened.push_async_callback(cancel_all, [answering])
        await asyncio.sleep(0)  # it subscribes as its first step
        await self.connection.flush()

    async def native(self, pool: str, *, limit_seconds: float = 5.0) -> NativeStand:
        harness = await self.opened.enter_async_context(native_stand(NATIVES[pool]))
        await self.worker(pool, ListEngineModels(harness.asked, limit_seconds))
        return harness

    def listing(self, pools: Sequence[str], *, wait_seconds: float = 5.0) -> ListModels:
        """One that has asked no pool yet."""
        lists = NatsModelListRequests(self.connection, SystemClock(), 8.0)
        known = [provider_pool(name, name, name) for name in pools]
        made = ListModels(known, ListedWorkers([]), lists, SystemClock(), ListingRules(wait_seconds))
        self.opened.push_async_callback(made.close)
        return made

    async def model(self, pool: str) -> ModelInfo:
        return (await self.listing([pool]).list_models()).models[0]

    async def source(self, pool: str) -> ModelSource:
        return (await self.listing([pool]).list_models()).sources[0]


@pytest_asyncio.fixture(loop_scope="module")
async def harness(nats: RunningServer) -> AsyncIterator[Stand]:
    async with AsyncExitStack() as opened:
        connection = await connect_nats(nats.address, "lists")
        opened.push_async_callback(connection.close)
        yield Stand(connection, opened)


class SurprisedEngine(ScriptedEngine):
    """Has an unexpected fault."""

    async def list_models(self) -> tuple[ModelInfo, ...]:
        raise KeyError("models")


@asynccontextmanager
async def openai_engine(server: ModelServer) -> AsyncIterator[HttpEngine]:
    async with model_server.serving(server) as port:
        made = HttpEngine(OpenAIApi(), Endpoint(f"http://127.0.0.1:{port}/v1", "openai", timeout_seconds=5.0))
        yield made
        await made.close()


async def test_every_native_provider_lists_its_models_with_capabilities(harness: Stand) -> None:
    for provider in NATIVES:
        await harness.native(provider)
    listed = await harness.listing(list(NATIVES)).list_models()
    assert [model.model for model in listed.models] == ["anthropic/fake", "gemini/fake", "ollama/fake"]
    assert [model.context_tokens for model in listed.models] == [200_000, 1_048_576, 131_072]
    anthropic, gemini, ollama = (model.capabilities for model in listed.models)
    assert anthropic == ModelCapabilities(chat=True)
    assert gemini == ModelCapabilities(chat=True, constrained=True, seed=True)
    assert ollama == ModelCapabilities(chat=True, completion=True, constrained=True, seed=True)
    assert listed.models[2].size_bytes == 1_321_098_329
    assert listed.models[2].memory_bytes is not None
    assert all(source.listed_at and not source.problem for source in listed.sources)


async def test_openai_compatible_server_lists_its_models(harness: Stand) -> None:
    engine = await harness.opened.enter_async_context(openai_engine(ModelServer(models=("a", "owner/b"))))
    await harness.worker("openai", ListEngineModels(engine, 5.0))
    listed = await harness.listing(["openai"]).list_models()
    assert [model.model for model in listed.models] == ["openai/a", "openai/owner/b"]
    assert listed.models[0].capabilities == ModelCapabilities(
        chat=True, completion=True, loglikelihood=True, seed=True, logprobs=True
    )


async def test_wrong_key_is_reported_without_the_key(harness: Stand) -> None:
    gemini = await harness.opened.enter_async_context(native_stand(GEMINI))
    gemini.server.api_key = "another"
    await harness.worker("gemini", ListEngineModels(gemini.asked, 5.0, has_key=True))
    source = await harness.source("gemini")
    assert source.has_key
    assert "check the API key in GEMINI_API_KEY" in source.problem
    assert SECRET not in source.problem
    assert source.listed_at is None


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Fault("status", status=503), "The server answered 503"),
        (Fault("malformed"), "not valid JSON"),
        (Fault("half_body"), "was cut off"),
        (Fault("reset"), "closed the connection"),
        (Fault("drip", seconds=0.5), "The list of models took longer than 1 s."),
        (Fault("hang", seconds=30), "The list of models took longer than 1 s."),
    ],
    ids=["status", "malformed", "half_body", "reset", "drip", "hang"],
)
async def test_provider_that_misbehaves_is_shown_as_such(harness: Stand, fault: Fault, problem: str) -> None:
    ollama = await harness.native("ollama", limit_seconds=1.0)
    ollama.server.fault = fault
    source = await harness.source("ollama")
    assert problem in source.problem
    assert source.listed_at is None
    # The request is given up, and the next one is answered.
    await eventually(lambda: ollama.server.in_flight == 0, "nothing is asked any more")
    ollama.server.fault = None

    async def is_listed() -> bool:
        # A machine under load can take longer than the second of one list.
        listed = await harness.listing(["ollama"]).list_models()
        return [info.model for info in listed.models] == ["ollama/fake"]

    await eventually(is_listed, "its model is listed")


async def test_provider_that_hangs_delays_no_other(harness: Stand) -> None:
    ollama = await harness.native("ollama")
    ollama.server.latency_seconds = 30
    await harness.native("anthropic")
    listing = harness.listing(["ollama", "anthropic"], wait_seconds=2.0)
    async with asyncio.timeout(20.0):
        listed = await listing.list_models()
    assert [model.model for model in listed.models] == ["anthropic/fake"]
    assert [bool(source.problem) for source in listed.sources] == [False, True]


async def test_pool_without_workers_is_reported_at_once(harness: Stand) -> None:
    async with asyncio.timeout(1.0):
        source = await harness.source("deserted")
    assert source.problem == "No worker of the pool is running; start one."
    assert source.has_key is None


async def test_one_of_several_workers_is_asked(harness: Stand) -> None:
    ollama = await harness.native("ollama")
    await harness.worker("ollama", ListEngineModels(ollama.asked, 5.0))
    await harness.model("ollama")
    assert [asked.path for asked in ollama.server.asked].count("/api/tags") == 1


async def test_answer_of_another_version_is_no_answer(harness: Stand) -> None:
    async def garbage(message: Msg) -> None:
        await message.respond(b"\xff")

    await harness.connection.subscribe(messaging.model_list_subject("odd"), cb=garbage)
    await harness.connection.flush()
    assert "cannot be read" in (await harness.source("odd")).problem


async def test_surprise_in_a_servers_list_is_no_end_of_the_worker(harness: Stand) -> None:
    await harness.worker("anthropic", ListEngineModels(SurprisedEngine(), 5.0))
    for _ in range(2):
        source = await harness.source("anthropic")
        assert "the log of the pool's worker says why" in source.problem
        assert source.has_key is False
