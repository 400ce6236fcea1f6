"""The engines of a worker by the server that they ask."""

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from services.worker.engines.errors import UnsupportedRequest
from services.worker.engines.ports import Engine

# Each has a pool of connections; orders may name any number of servers.
_MAX_CACHED_IDLE = 8


class EngineCache:
    """`make_other` makes a keyless engine for a base URL; None where the pool uses only its own server."""

    def __init__(self, own: Engine, make_other: Callable[[str], Engine] | None = None) -> None:
        self.own = own
        self._make_other = make_other
        self._others: OrderedDict[str, Engine] = OrderedDict()
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def for_server(self, base_url: str) -> AsyncIterator[Engine]:
        """It stays open while it is used; of the idle ones the latest are kept."""
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
        # The first of the dictionary is the one that has been idle longest.
        self._others.move_to_end(base_url)
        return self._others[base_url]

    async def _close_idle(self) -> None:
        for base_url in list(self._others):
            if len(self._others) <= _MAX_CACHED_IDLE:
                return
            if not self._users[base_url]:
                # Before the await: a request that comes meanwhile makes an engine of its own.
                del self._users[base_url]
                await self._others.pop(base_url).close()
