"""The worker's report of models that its engine refuses."""

from datetime import UTC, datetime

from services.worker.engines.errors import ModelCannotLoad
from services.worker.models.model_loader import ModelLoader
from tests.fakes.worker.scripted_engine import ScriptedEngine


class HandClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, tz=UTC)

    def monotonic(self) -> float:
        return self.seconds


class RefusesForAWhile(ScriptedEngine):
    """Refuses a while, as while the memory of a dead engine is still taken."""

    refusals = 2

    async def load(self, model: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ModelCannotLoad("No memory is free.")
        await super().load(model)


class SharesItsEngine(ScriptedEngine):
    """A bad adapter leaves the engine as it is; without the model under them there is none."""

    async def load(self, model: str) -> None:
        if model not in self.loadable and self.loaded_model:
            raise ModelCannotLoad(f"There is no adapter {model}.")
        await super().load(model)


async def test_a_refused_model_is_reported_with_the_reason_and_retried_later() -> None:
    clock, engine = HandClock(), ScriptedEngine()
    loader = ModelLoader(engine, (("vllm/a",),), clock, retry_seconds=60)
    assert not await loader.load("vllm/a")
    assert loader.cannot_load == {"vllm/a": "There is no model vllm/a."}
    assert not loader.may_load("vllm/a")
    clock.seconds = 61
    assert loader.may_load("vllm/a")
    assert loader.cannot_load == {}


async def test_a_loaded_model_is_no_longer_refused_and_the_engine_is_described() -> None:
    engine = ScriptedEngine()
    loader = ModelLoader(engine, (("vllm/a",),), HandClock(), retry_seconds=60)
    await loader.load("vllm/a")
    engine.loadable.append("vllm/a")
    assert await loader.load("vllm/a")
    assert (loader.loaded_model, loader.cannot_load) == ("vllm/a", {})
    assert loader.environment["engine"] == "scripted"
    assert not loader.is_loading


async def test_a_model_that_was_served_is_not_given_up_at_the_first_refusal() -> None:
    engine = RefusesForAWhile(loadable=("vllm/a",))
    loader = ModelLoader(engine, (("vllm/a",),), HandClock(), retry_seconds=60)
    assert not await loader.load("vllm/a")
    engine.refusals = 0
    assert await loader.load("vllm/a")
    engine.refusals = 2
    assert await loader.load("vllm/a")
    engine.refusals = 3
    assert not await loader.load("vllm/a")


def test_a_pool_without_a_list_serves_any_model() -> None:
    assert ModelLoader(ScriptedEngine(), (), HandClock(), retry_seconds=60).serves_any


def group_of_three(engine: ScriptedEngine) -> ModelLoader:
    groups = (("vllm/base", "vllm/one", "vllm/two"), ("vllm/else",))
    return ModelLoader(engine, groups, HandClock(), retry_seconds=60)


async def test_models_that_share_an_engine_are_ready_together_and_a_bad_one_is_reported_alone() -> None:
    loader = group_of_three(SharesItsEngine(loadable=("vllm/base", "vllm/one")))
    assert await loader.load("vllm/one")
    assert loader.ready_models == ("vllm/one", "vllm/base")
    assert loader.cannot_load == {"vllm/two": "There is no adapter vllm/two."}


async def test_an_engine_that_does_not_start_is_tried_once_for_all_that_would_share_it() -> None:
    loader = group_of_three(SharesItsEngine(loadable=("vllm/else",)))
    assert not await loader.load("vllm/one")
    assert set(loader.cannot_load.values()) == {"There is no model vllm/one."}
    assert (len(loader.cannot_load), loader.ready_models) == (3, ())
    assert loader.may_load("vllm/else")
