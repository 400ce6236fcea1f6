"""A list of models ends in time, names what went wrong, and fits a message."""

import asyncio

from proctor.values.providers.models import ModelCapabilities, ModelInfo
from services.worker.engines.errors import RequestRefused
from services.worker.models.list_engine_models import ListEngineModels
from services.worker.models.nats import listing_to_proto
from tests.fakes.worker.scripted_engine import ScriptedEngine

CAN = ModelCapabilities(
    loglikelihood=False, chat=True, completion=False, constrained=False, seed=True, logprobs=False
)


class ListingEngine(ScriptedEngine):
    """Lists what a test gives it, or fails, or hangs."""

    def __init__(self, *models: ModelInfo, failure: Exception | None = None, hangs: bool = False) -> None:
        super().__init__()
        self._models = models
        self._failure = failure
        self._hangs = hangs

    async def list_models(self) -> tuple[ModelInfo, ...]:
        if self._failure:
            raise self._failure
        if self._hangs:
            await asyncio.Event().wait()
        return self._models


async def test_models_of_the_engine_are_listed() -> None:
    model = ModelInfo(
        "ollama/a",
        is_loaded=True,
        context_tokens=4096,
        size_bytes=1_000,
        memory_bytes=2_000,
        quantization="Q4_K_M",
        capabilities=CAN,
    )
    listing = await ListEngineModels(ListingEngine(model), 5.0).list_models()
    [reported] = listing_to_proto(listing, "remote").models
    assert (reported.model, reported.pool, reported.is_loaded, reported.quantization) == (
        "ollama/a",
        "remote",
        True,
        "Q4_K_M",
    )
    assert (reported.context_tokens, reported.size_bytes, reported.memory_bytes) == (4096, 1_000, 2_000)
    assert (reported.capabilities.chat, reported.capabilities.seed, reported.capabilities.images) == (
        True,
        True,
        False,
    )


async def test_failure_is_reported_by_its_message() -> None:
    failing = ListingEngine(failure=RequestRefused("The server answered 401 (check the API key in A_KEY)."))
    listing = await ListEngineModels(failing, 5.0).list_models()
    assert (listing.models, listing.problem) == ((), "The server answered 401 (check the API key in A_KEY).")


async def test_server_that_hangs_is_given_up() -> None:
    listing = await ListEngineModels(ListingEngine(hangs=True), 0.05).list_models()
    assert listing.problem == "The list of models took longer than 0.05 s."


async def test_endless_list_is_cut_with_a_note() -> None:
    endless = (ModelInfo(f"a/{number}", capabilities=CAN) for number in range(3000))
    listing = await ListEngineModels(ListingEngine(*endless), 5.0).list_models()
    assert len(listing.models) == 2000
    assert listing.problem == "1000 of 3000 models are left out of the list."


async def test_names_that_are_no_names_are_left_out() -> None:
    odd = (
        ModelInfo("a/" + "x" * 9999, capabilities=CAN),
        ModelInfo("a/\x1b[2J", capabilities=CAN),
        ModelInfo("a/b:c d/e", capabilities=CAN),
    )
    listing = await ListEngineModels(ListingEngine(*odd), 5.0).list_models()
    assert [model.model for model in listing.models] == ["a/b:c d/e"]
    assert listing.problem == "2 of 3 models are left out of the list."


async def test_counts_that_do_not_fit_a_message_are_left_out() -> None:
    absurd = ModelInfo("a/b", capabilities=CAN, context_tokens=2**40, size_bytes=2**70)
    listing = await ListEngineModels(ListingEngine(absurd), 5.0).list_models()
    [reported] = listing_to_proto(listing, "remote").models
    assert not reported.HasField("context_tokens")
    assert not reported.HasField("size_bytes")
