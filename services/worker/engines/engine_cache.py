"""The engine that a shard is asked of: the pool's own, or one for the server that its order names."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from services.worker.engines.engine import Engine, UnsupportedRequest

_KEPT = 8


class Engines:
    """`make_other` makes the engine for a base URL, without a key; None where the pool asks only its own."""

    def __init__(self, own: Engine, make_other: Callable[[str], Engine] | None = None) -> None:
        self.own = own
        self._make_other = make_other
        self._others: OrderedDict[str, Engine] = OrderedDict()
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def at(self, base_url: str) -> AsyncIterator[Engine]:
        """It stays open while it is used; of those that are not, the latest are kept."""
        engine = self._other(base_url)
        self._users[base_url] += 1
        try:
            yield engine
        finally:
            self._users[base_url] -= 1
            await self._close_idle()

    async def close(self) -> None:
        while self._others:
            await self._others.popitem()[1].close()

    def _other(self, base_url: str) -> Engine:
        if self._make_other is None:
            raise UnsupportedRequest("This pool asks no server but its own; leave base_url out of the order.")
        if base_url not in self._others:
            self._others[base_url] = self._make_other(base_url)
        self._others.move_to_end(base_url)
        return self._others[base_url]

    async def _close_idle(self) -> None:
        for base_url in list(self._others):
            if len(self._others) <= _KEPT:
                return
            if not self._users[base_url]:
                del self._users[base_url]
                await self._others.pop(base_url).close()
