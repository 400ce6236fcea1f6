"""The paces of a worker: that of its pool's own server, and of each server that an order named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from services.common.clock import Clock
from services.worker.backoff import Backoff
from services.worker.pace import Allowed, Pace, pace_name

_REMEMBERED = 256


class Paces:
    """Without a provider the engine is the worker's own: its one pace has no name, and nobody shares it."""

    def __init__(
        self,
        clock: Clock,
        backoff: Backoff,
        provider: str = "",
        base_url: str = "",
        api_key: str | None = None,
    ) -> None:
        self._clock = clock
        self._backoff = backoff
        self._provider = provider
        self._own_url = base_url.rstrip("/")
        self.own = Pace(pace_name(provider, base_url, api_key) if provider else "", clock, backoff)
        self._others: dict[str, Pace] = {}

    def __iter__(self) -> Iterator[Pace]:
        yield self.own
        yield from list(self._others.values())

    def of(self, base_url: str) -> Pace:
        """Empty: the pool's own server. Any other is asked without the pool's key."""
        url = base_url.rstrip("/")
        if not url or url == self._own_url:
            return self.own
        pace = self._others.get(url)
        if pace is None:
            pace = self._others[url] = Pace(pace_name(self._provider, url, None), self._clock, self._backoff)
            if len(self._others) > _REMEMBERED:
                del self._others[next(iter(self._others))]
        return pace

    def named(self, name: str) -> Pace | None:
        return next((pace for pace in self if pace.name == name), None)

    def throttled_servers(self) -> Mapping[str, datetime]:
        """Base URL, empty for the pool's own server, to when those are asked again that said to wait."""
        paces = {"": self.own, self._own_url: self.own, **self._others}
        return {url: until for url, pace in paces.items() if (until := pace.held_until())}

    def hear(self, base_url: str, allowed: Allowed) -> None:
        """A server's headers told what it allows."""
        self.of(base_url).hear(allowed)
