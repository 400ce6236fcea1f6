"""Live lists of models: asked once, kept for a while, and no pool delays the others."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from proctor.values.providers.models import ModelInfo
from proctor.values.providers.pool import Provider
from services.scheduler.workers.list_models import (
    ListingRules,
    ListModels,
    ModelList,
    ModelSource,
    PoolListing,
)
from services.scheduler.workers.model_names import UnknownProvider
from services.scheduler.workers.proto import models_to_proto
from services.scheduler.workers.worker import Worker
from tests.fakes.eventually import eventually
from tests.fakes.pools import model_pool, provider_pool
from tests.fakes.scheduler.surroundings import ListedWorkers, SetClock

LOCAL = model_pool("local", "vllm/starter")
REMOTE = provider_pool("remote", "ollama", "ollama")
OTHER = replace(
    provider_pool("other", "gemini", "gemini"), provider=Provider("gemini", "http://127.0.0.1:1", "A_KEY")
)
POOLS = (LOCAL, REMOTE, OTHER)
AT = datetime(2026, 11, 1, tzinfo=UTC)
RULES = ListingRules(wait_seconds=0.05)


def listing(*names: str) -> PoolListing:
    return PoolListing(tuple(ModelInfo(name, "?", size_bytes=7) for name in names), listed_at=AT)


class ReportedLists:
    """Model lists of pools, set by a test; a pool that `hangs` answers once it is let go."""

    def __init__(self) -> None:
        self.reported: dict[str, PoolListing] = {}
        self.asked: Counter[str] = Counter()
        self.hangs: dict[str, asyncio.Event] = {}

    async def of_pool(self, pool: str) -> PoolListing:
        self.asked[pool] += 1
        if pool in self.hangs:
            await self.hangs[pool].wait()
        return self.reported.get(pool, PoolListing(listed_at=AT))


class Stand:
    def __init__(self, *workers: Worker) -> None:
        self.lists = ReportedLists()
        self.clock = SetClock()
        self.listing = ListModels(POOLS, ListedWorkers(list(workers)), self.lists, self.clock, RULES)


@pytest.fixture
async def harness() -> AsyncIterator[Stand]:
    made = Stand()
    yield made
    await made.listing.close()


def names(listed: ModelList) -> list[str]:
    return [model.model for model in listed.models]


def source(listed: ModelList, pool: str) -> ModelSource:
    return next(each for each in listed.sources if each.pool == pool)


async def test_models_of_pools_workers_and_providers_are_one_list() -> None:
    beating = Worker("w", "local", "vllm", loaded_model="vllm/starter", ready_models=("vllm/lora",))
    naming = Worker("v", "remote", "ollama", models=("ollama/b",))
    harness = Stand(beating, naming)
    harness.lists.reported = {"remote": listing("ollama/c", "ollama/a"), "local": listing("vllm/starter")}
    listed = await harness.listing.list_models()
    assert names(listed) == ["ollama/a", "ollama/b", "ollama/c", "vllm/starter"]
    assert [model.pool for model in listed.models] == ["remote", "remote", "remote", "local"]
    assert [model.is_loaded for model in listed.models] == [False, False, False, True]
    assert [model.size_bytes for model in listed.models] == [7, None, 7, 7]


async def test_sources_are_all_pools_with_what_kept_them(harness: Stand) -> None:
    harness.lists.reported = {"other": PoolListing(problem="check the API key in A_KEY", has_key=False)}
    listed = await harness.listing.list_models()
    assert listed.sources == (
        ModelSource("local", "vllm", "vllm", "", AT),
        ModelSource("other", "gemini", "gemini", "check the API key in A_KEY", None, "A_KEY", has_key=False),
        ModelSource("remote", "ollama", "ollama", "", AT),
    )
    assert names(listed) == ["vllm/starter"]


async def test_model_that_no_worker_can_load_says_why() -> None:
    harness = Stand(Worker("w", "local", "vllm", cannot_load={"vllm/starter": "too big"}))
    [starter] = (await harness.listing.list_models("vllm")).models
    assert starter.problem == "too big"


async def test_model_that_a_pool_does_not_serve_is_not_listed_under_it(harness: Stand) -> None:
    harness.lists.reported = {"remote": listing("gemini/x", "ollama/", "ollama/a")}
    assert names(await harness.listing.list_models()) == ["ollama/a", "vllm/starter"]


async def test_model_of_two_pools_is_that_of_the_pool_that_orders_go_to() -> None:
    any_vllm = provider_pool("any", provider="vllm")
    lists = ReportedLists()
    lists.reported = {"any": listing("vllm/starter", "vllm/other"), "local": listing("vllm/starter")}
    listed = await ListModels((any_vllm, LOCAL), ListedWorkers([]), lists, SetClock(), RULES).list_models()
    assert [(model.model, model.pool) for model in listed.models] == [
        ("vllm/other", "any"),
        ("vllm/starter", "local"),
    ]


async def test_one_provider_is_asked_alone(harness: Stand) -> None:
    harness.lists.reported = {"remote": listing("ollama/a")}
    listed = await harness.listing.list_models("ollama")
    assert (names(listed), [each.pool for each in listed.sources]) == (["ollama/a"], ["remote"])
    assert harness.lists.asked == Counter(["remote"])


async def test_aliases_are_reported_of_the_providers_that_were_asked_for(harness: Stand) -> None:
    aliases = {"small": "vllm/starter", "other": "ollama/a"}
    assert dict(models_to_proto(await harness.listing.list_models(), aliases).aliases) == aliases
    of_one = models_to_proto(await harness.listing.list_models("ollama"), aliases)
    assert dict(of_one.aliases) == {"other": "ollama/a"}


async def test_unknown_provider_is_refused_with_those_there_are(harness: Stand) -> None:
    with pytest.raises(UnknownProvider) as refused:
        await harness.listing.list_models("olama")
    assert refused.value.facts == {"provider": "olama", "advice": "", "supported": "gemini, ollama, vllm"}


async def test_list_is_kept_for_a_while_and_a_failure_for_a_shorter_one(harness: Stand) -> None:
    harness.lists.reported = {"other": PoolListing(problem="no")}
    await harness.listing.list_models()
    harness.clock.seconds += 4
    await harness.listing.list_models()
    assert harness.lists.asked == Counter(["local", "remote", "other"])
    harness.clock.seconds += 2
    await harness.listing.list_models()
    assert harness.lists.asked == Counter(["local", "remote", "other", "other"])
    harness.clock.seconds += 15
    await harness.listing.list_models()
    assert harness.lists.asked["remote"] == 2


async def test_pool_that_does_not_answer_delays_nothing_and_is_listed_later(harness: Stand) -> None:
    harness.lists.hangs["remote"] = asyncio.Event()
    harness.lists.reported = {"remote": listing("ollama/late"), "other": listing("gemini/a")}
    async with asyncio.timeout(1.0):
        listed = await harness.listing.list_models()
    assert names(listed) == ["gemini/a", "vllm/starter"]
    assert source(listed, "remote").problem.startswith("No answer within 0.05 s")
    assert source(listed, "remote").listed_at is None
    harness.lists.hangs["remote"].set()

    async def is_listed() -> bool:
        return "ollama/late" in names(await harness.listing.list_models())

    await eventually(is_listed, "what came late is listed")
    assert harness.lists.asked["remote"] == 1


async def test_callers_at_once_ask_once(harness: Stand) -> None:
    both = await asyncio.gather(harness.listing.list_models(), harness.listing.list_models("ollama"))
    assert harness.lists.asked == Counter(["local", "remote", "other"])
    assert source(both[0], "remote") == source(both[1], "remote")


async def test_caller_that_goes_away_ends_no_other_call(harness: Stand) -> None:
    harness.lists.hangs["remote"] = asyncio.Event()
    harness.lists.reported = {"remote": listing("ollama/a")}
    going = asyncio.create_task(harness.listing.list_models("ollama"))
    await eventually(lambda: harness.lists.asked["remote"] == 1, "the pool is asked")
    staying = asyncio.create_task(harness.listing.list_models("ollama"))
    going.cancel()
    harness.lists.hangs["remote"].set()
    assert names(await staying) == ["ollama/a"]
    assert harness.lists.asked["remote"] == 1


async def test_closing_ends_what_is_still_asked(harness: Stand) -> None:
    harness.lists.hangs["remote"] = asyncio.Event()
    await harness.listing.list_models()
    await harness.listing.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("list models of")]
