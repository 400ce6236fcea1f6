"""Limits how fast this worker sends requests to each provider under each API key.

What a provider allows belongs to the key, so the leader splits it into quotas for all workers. A 429, or a
Retry-After, throttles all requests of the worker to that provider. After a Retry-After one request goes ahead
of the others as a probe: a limit of a day costs one 429 a minute, and its end is noticed.
"""

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.common.clock import Clock
from services.worker.rate_limits.waits import Backoff, TokenBucket, capped_retry_after

# The weight of the latest answer in the expected number of tokens of the next one.
_LATEST_WEIGHT = 0.1
# Workers that resume after a throttle are spread over at most this long.
_MAX_SPREAD_SECONDS = 5.0
# The probe goes ahead of the others by this share of the Retry-After, since a 429 comes at once.
_PROBE_LEAD_SHARE = 0.1
# A shorter throttle is over before it could be read.
_MIN_REPORTED_SECONDS = 5.0
# Runs whose request retries are counted: the counts travel with every report.
_MAX_CACHED_RUNS = 64
# Orders name servers freely; this bounds the memory. A forgotten one starts without its limits.
_MAX_CACHED_SERVERS = 256


# Some 50 ms, once for an API key: who reads the rates of a pool can try few weak keys by it.
_KEY_ITERATIONS = 100_000


def rate_limit_key(provider: str, base_url: str, api_key: str | None) -> str:
    """The same for all workers that use this API key; the key cannot be found from it."""
    server = "\n".join((provider, base_url.rstrip("/"))).encode()
    if not api_key:
        return hashlib.sha256(server).hexdigest()[:16]
    return hashlib.pbkdf2_hmac("sha256", api_key.encode(), server, _KEY_ITERATIONS).hex()[:16]


@dataclass(frozen=True, slots=True)
class AllowedLimits:
    """The limits of the key in the provider's headers, per second; None where they name no limit."""

    requests: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class QuotaShare:
    """Requests and tokens per second that this worker may send from `resume_at` on; None: no limit."""

    requests: float | None = None
    tokens: float | None = None
    resume_at: datetime | None = None


class ProviderRateLimiter:
    """Counts the requests to one provider since the worker started, and makes them wait for quota.

    `key` is empty for an engine in the worker, which no other worker shares.
    """

    def __init__(self, key: str, clock: Clock, backoff: Backoff) -> None:
        self.key = key
        self.sent = 0
        self.rate_limited = 0
        self.requests_waiting_for_quota = 0
        self.request_retries: Counter[str] = Counter()
        self.allowed = AllowedLimits()
        # The provider's own Retry-After, capped.
        self.resume_at: datetime | None = None
        self._clock = clock
        self._backoff = backoff
        self._rate_limited_in_a_row = 0
        self._expected_tokens = 0.0
        # The end of a throttle that is long enough to report.
        self._reported_until: datetime | None = None
        # In the time of the loop; 0 while nothing is throttled.
        self._throttled_until = 0.0
        self._probe_lead_seconds = 0.0
        self._requests = TokenBucket()
        self._tokens = TokenBucket()
        self._queue = asyncio.Lock()

    async def acquire(self) -> None:
        """Returns when a request may be sent: at once while no limit is known."""
        # Without a limit no lock: this is on the path of every request.
        if not (self._throttled_until or self._requests.rate or self._tokens.rate):
            return
        self.requests_waiting_for_quota += 1
        try:
            # Waiters are served in their order, and `TokenBucket.take` allows one at a time.
            async with self._queue:
                await self._wait()
        finally:
            self.requests_waiting_for_quota -= 1

    def on_sent(self) -> None:
        self.sent += 1

    def on_accepted(self, tokens: int = 0) -> None:
        """The provider accepted a request, whatever came of it."""
        self._rate_limited_in_a_row = 0
        if tokens:
            # The first answer is the whole estimate.
            weight = _LATEST_WEIGHT if self._expected_tokens else 1.0
            self._expected_tokens += weight * (tokens - self._expected_tokens)

    def on_rate_limited(self, retry_after_seconds: float | None) -> None:
        """The provider answered 429. Of requests in flight together, the first one sets the wait."""
        self.rate_limited += 1
        if retry_after_seconds is not None:
            self.on_retry_after(retry_after_seconds)
        # Requests in flight together fail together: they count as one 429, not as many in a row.
        elif not self.throttled_seconds():
            self._rate_limited_in_a_row += 1
            self._throttle(0.0, self._backoff.seconds(self._rate_limited_in_a_row))

    def on_retry_after(self, seconds: float) -> None:
        resume_at = self._clock.now() + timedelta(seconds=capped_retry_after(seconds))
        # The latest: a shorter one came for a request that was sent before.
        self.resume_at = max(resume_at, self.resume_at or resume_at)
        self._throttle_with_probe(seconds)

    def on_request_retry(self, run_id: str) -> None:
        """A request is sent again after a failure other than a 429."""
        self.request_retries[run_id] += 1
        if len(self.request_retries) > _MAX_CACHED_RUNS:
            del self.request_retries[next(iter(self.request_retries))]

    def on_allowed(self, limits: AllowedLimits) -> None:
        """Headers that name only one of the limits leave the other as it was."""
        known = self.allowed
        self.allowed = AllowedLimits(limits.requests or known.requests, limits.tokens or known.tokens)

    def apply_quota(self, quota: QuotaShare) -> None:
        is_first = self._requests.rate is None and quota.requests is not None
        self._requests.set_rate(quota.requests)
        self._tokens.set_rate(quota.tokens)
        if is_first:
            self._throttle(0.0, self._spread_seconds())
        if quota.resume_at is not None and quota.resume_at > (now := self._clock.now()):
            self._throttle_with_probe((quota.resume_at - now).total_seconds())

    def throttled_seconds(self) -> float:
        """Seconds until the next request may be sent, whatever waits before it."""
        if not self._throttled_until:
            return 0.0
        return max(0.0, self._throttled_until - asyncio.get_running_loop().time())

    def reported_until(self) -> datetime | None:
        """The end of the present throttle; None where there is none, or it is too short to report."""
        return self._reported_until if self.throttled_seconds() else None

    async def _wait(self) -> None:
        await self._requests.take(1)
        await self._tokens.take(self._expected_tokens)
        # Last, so that a throttle that began meanwhile applies.
        while seconds := self.throttled_seconds():  # noqa: ASYNC110  # it may be prolonged meanwhile
            await asyncio.sleep(seconds)
        lead, self._probe_lead_seconds = self._probe_lead_seconds, 0.0
        self._throttled_until = asyncio.get_running_loop().time() + lead if lead else 0.0

    def _spread_seconds(self) -> float:
        """If all workers resumed at once, the provider would answer most of their requests with 429."""
        rate = self._requests.rate
        # 1 / rate is this worker's own interval: within it each worker has one request.
        return random.uniform(0, min(1 / rate, _MAX_SPREAD_SECONDS)) if rate else self._backoff.seconds(1)

    def _throttle_with_probe(self, seconds: float) -> None:
        seconds = capped_retry_after(seconds)
        lead = _PROBE_LEAD_SHARE * seconds
        # At random within the lead, so that workers under one key probe one after the other.
        if self._throttle(seconds, max(self._spread_seconds(), random.uniform(0, lead))):
            self._probe_lead_seconds = lead

    def _throttle(self, seconds: float, spread_seconds: float) -> bool:
        """Whether it ends later than the present throttle, which otherwise stays as it is."""
        until = asyncio.get_running_loop().time() + seconds
        if until <= self._throttled_until:
            return False
        whole = seconds + spread_seconds
        self._throttled_until = until + spread_seconds
        is_long = whole >= _MIN_REPORTED_SECONDS
        self._reported_until = self._clock.now() + timedelta(seconds=whole) if is_long else None
        return True


class RateLimiters:
    """One limiter for the pool's own server, and one for each server that an order named.

    Without a provider the engine runs in the worker: its limiter has no key and is not shared.
    """

    def __init__(
        self,
        *,
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
        key = rate_limit_key(provider, base_url, api_key) if provider else ""
        self.own = ProviderRateLimiter(key, clock, backoff)
        self._others: dict[str, ProviderRateLimiter] = {}

    def __iter__(self) -> Iterator[ProviderRateLimiter]:
        yield self.own
        yield from list(self._others.values())

    def for_server(self, base_url: str) -> ProviderRateLimiter:
        """Empty means the pool's own server. Requests to any other server carry no API key."""
        if not base_url:
            return self.own
        url = base_url.rstrip("/")
        if not url or url == self._own_url:
            return self.own
        limiter = self._others.get(url)
        if limiter is None:
            key = rate_limit_key(self._provider, url, None)
            limiter = self._others[url] = ProviderRateLimiter(key, self._clock, self._backoff)
            if len(self._others) > _MAX_CACHED_SERVERS:
                del self._others[next(iter(self._others))]
        return limiter

    def by_key(self, key: str) -> ProviderRateLimiter | None:
        return next((limiter for limiter in self if limiter.key == key), None)

    def throttled_servers(self) -> Mapping[str, datetime]:
        """Base URL, empty for the pool's own server, to when requests are sent there again."""
        limiters = {"": self.own, self._own_url: self.own, **self._others}
        return {url: until for url, limiter in limiters.items() if (until := limiter.reported_until())}

    def on_allowed(self, base_url: str, limits: AllowedLimits) -> None:
        self.for_server(base_url).on_allowed(limits)
