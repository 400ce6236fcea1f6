"""EngineCache for the servers that orders name: few are kept, and none is closed while it is used."""

import pytest

from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.errors import UnsupportedRequest
from tests.fakes.worker.scripted_engine import ScriptedEngine


class Noted(ScriptedEngine):
    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


class Made:
    def __init__(self) -> None:
        self.engines: dict[str, Noted] = {}

    def make(self, base_url: str) -> Noted:
        assert base_url not in self.open
        self.engines[base_url] = Noted()
        return self.engines[base_url]

    @property
    def open(self) -> set[str]:
        return {base_url for base_url, engine in self.engines.items() if not engine.is_closed}


async def test_one_engine_for_a_server_however_often_it_is_asked() -> None:
    made = Made()
    engines = EngineCache(ScriptedEngine(), made.make)
    async with engines.for_server("http://a") as first, engines.for_server("http://a") as second:
        assert first is second is made.engines["http://a"]
    async with engines.for_server("http://a") as again:
        assert again is first


async def test_those_asked_lately_are_kept_and_none_in_use_is_closed() -> None:
    made = Made()
    engines = EngineCache(ScriptedEngine(), made.make)
    async with engines.for_server("http://used"):
        for number in range(20):
            async with engines.for_server(f"http://{number}"):
                pass
        assert made.open == {"http://used", *(f"http://{number}" for number in range(13, 20))}
    await engines.close()
    assert made.open == set()


async def test_pool_with_only_its_own_server_refuses_others() -> None:
    with pytest.raises(UnsupportedRequest, match="leave base_url out"):
        async with EngineCache(ScriptedEngine()).for_server("http://a"):
            pass
