"""How fast this worker sends requests to each provider under each key."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.common.clock import Clock
from services.worker.rate_limits.backoff import Backoff, heeded
from services.worker.rate_limits.token_bucket import RateBucket

# How much the tokens of the last answer count in what the next one is expected to take.
_LATEST_WEIGHT = 0.1
# Over so many seconds at most the workers are spread out that come back from a wait.
_LONGEST_SPREAD = 5.0
# Of a wait by the provider's word: the first request after it is so long ahead, since refusals come at once.
_LEAD_SHARE = 0.1
# A shorter wait is over before anybody has read of it.
_WORTH_TELLING_SECONDS = 5.0
# They travel with every report.
_REMEMBERED_RUNS = 64


def pace_name(provider: str, base_url: str, api_key: str | None) -> str:
    """The same for all who ask with this key; tells nothing of the key."""
    whole = "\n".join((provider, base_url.rstrip("/"), api_key or ""))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the provider's headers allow the key, per second; None where they say nothing."""

    requests: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """What this worker may ask per second; None while no limit is known."""

    requests: float | None = None
    tokens: float | None = None
    resume_at: datetime | None = None


class Pace:
    """Counts what was asked since the worker began, and makes requests wait for their turn."""

    def __init__(self, name: str, clock: Clock, backoff: Backoff) -> None:
        self.name = name
        self.sent = 0
        self.accepted = 0
        self.limited = 0
        self.tokens = 0
        self.waiting = 0
        self.retries: Counter[str] = Counter()
        self.allowed = Allowed()
        # By the provider's own word, as far as it is heeded.
        self.told_to_resume_at: datetime | None = None
        self._clock = clock
        self._backoff = backoff
        self._refused_in_a_row = 0
        self._tokens_of_an_answer = 0.0
        # The end of a wait that is worth telling.
        self._told_until: datetime | None = None
        # In the time of the loop; 0 while nothing is held.
        self._resume_at = 0.0
        self._lead_seconds = 0.0
        self._requests = RateBucket()
        self._tokens = RateBucket()
        self._queue = asyncio.Lock()

    async def turn(self) -> None:
        """Returns when a request may go out: at once while nothing is known that forbids it."""
        if not (self._resume_at or self._requests.rate or self._tokens.rate):
            return
        self.waiting += 1
        try:
            async with self._queue:
                await self._wait()
        finally:
            self.waiting -= 1

    def sends(self) -> None:
        """A request goes out."""
        self.sent += 1

    def took(self, tokens: int = 0) -> None:
        """The provider took a request, whatever came of it."""
        self.accepted += 1
        self._refused_in_a_row = 0
        self.tokens += tokens
        if tokens:
            weight = _LATEST_WEIGHT if self._tokens_of_an_answer else 1.0
            self._tokens_of_an_answer += weight * (tokens - self._tokens_of_an_answer)

    def refused(self, retry_after_seconds: float | None) -> None:
        """The provider answered 429. Of those that were under way together, the first one sets the wait."""
        self.limited += 1
        if retry_after_seconds is not None:
            self.resume_in(retry_after_seconds)
        elif not self.held_seconds():
            self._refused_in_a_row += 1
            self._hold(0.0, self._backoff.seconds(self._refused_in_a_row))

    def resume_in(self, seconds: float) -> None:
        """The provider said when to come back."""
        told = self._clock.now() + timedelta(seconds=heeded(seconds))
        self.told_to_resume_at = max(told, self.told_to_resume_at or told)
        self._hold_by_word(seconds)

    def retried(self, run_id: str) -> None:
        """A request is sent again after a failure that was no 429."""
        self.retries[run_id] += 1
        if len(self.retries) > _REMEMBERED_RUNS:
            del self.retries[next(iter(self.retries))]

    def hear(self, allowed: Allowed) -> None:
        """The provider's headers; what they told before stands where they say nothing now."""
        known = self.allowed
        self.allowed = Allowed(allowed.requests or known.requests, allowed.tokens or known.tokens)

    def grant(self, granted: Granted) -> None:
        is_first = self._requests.rate is None and granted.requests is not None
        self._requests.set_rate(granted.requests)
        self._tokens.set_rate(granted.tokens)
        if is_first:
            self._hold(0.0, self._own_moment())
        if granted.resume_at is not None and granted.resume_at > (now := self._clock.now()):
            self._hold_by_word((granted.resume_at - now).total_seconds())

    def held_seconds(self) -> float:
        """Until the next request may go out, whatever waits before it."""
        return max(0.0, self._resume_at - asyncio.get_running_loop().time()) if self._resume_at else 0.0

    def held_until(self) -> datetime | None:
        """None unless a wait goes on that is worth telling."""
        return self._told_until if self.held_seconds() else None

    async def _wait(self) -> None:
        await self._requests.take(1)
        await self._tokens.take(self._tokens_of_an_answer)
        # Last, so that a word that came meanwhile is heeded.
        while seconds := self.held_seconds():  # noqa: ASYNC110  # it may be put off meanwhile
            await asyncio.sleep(seconds)
        lead, self._lead_seconds = self._lead_seconds, 0.0
        self._resume_at = asyncio.get_running_loop().time() + lead if lead else 0.0

    def _own_moment(self) -> float:
        """All workers hear the same; if they came back together, the provider would refuse most of them."""
        rate = self._requests.rate
        return random.uniform(0, min(1 / rate, _LONGEST_SPREAD)) if rate else self._backoff.seconds(1)

    def _hold_by_word(self, seconds: float) -> None:
        lead = _LEAD_SHARE * heeded(seconds)
        if self._hold(heeded(seconds), max(self._own_moment(), random.uniform(0, lead))):
            self._lead_seconds = lead

    def _hold(self, seconds: float, more: float) -> bool:
        """A later word on the same wait changes nothing."""
        until = asyncio.get_running_loop().time() + seconds
        is_news = until > self._resume_at
        if is_news:
            self._resume_at = until + more
            is_long = seconds + more >= _WORTH_TELLING_SECONDS
            self._told_until = self._clock.now() + timedelta(seconds=seconds + more) if is_long else None
        return is_news


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
