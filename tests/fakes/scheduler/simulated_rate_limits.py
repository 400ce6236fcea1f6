"""Ten workers, a provider that counts, and the leader's rules, all on a clock that a loop turns: no waiting.

A worker behaves like a real one in a few lines: it sends as its share allows, pauses when it is rate limited,
and reports each second, or sooner after a 429. A quota reaches it half a second late.
"""

import math
import random
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from services.scheduler.rate_limits.adaptive_limit import AdaptiveLimit
from services.scheduler.rate_limits.assign_quotas import quotas_for
from services.scheduler.rate_limits.rate_meter import RateMeter, RateQuota, RateReport
from tests.fakes.scheduler.token_bucket import TokenBucket

POOL = "remote"
TICK = 0.01
ROUND = 0.5
QUOTA_DELAY = 0.5
BURST_SECONDS = 0.1
FIRST_BACKOFF = 0.5
MAX_BACKOFF = 20.0


def clock_time(now: float) -> datetime:
    return datetime.fromtimestamp(now, tz=UTC)


@dataclass
class SimulatedWorker:
    name: str
    rng: random.Random
    concurrency: int = 8
    # What it wants to send in a second; it sends no more than its concurrency in a tick.
    needed: float = math.inf
    rate: float | None = None
    sent: int = 0
    rate_limited: int = 0
    reported_at: float = 0.0
    reported_refusals: int = 0
    held_until: float = 0.0
    in_a_row: int = 0
    budget: float = 0.0
    wanted: float = 0.0
    resume_at: float = 0.0

    def send(self, now: float, provider: "SimulatedProvider") -> None:
        ceiling = BURST_SECONDS * (self.rate or 0.0)
        self.budget = min(max(ceiling, 1.0), self.budget + TICK * (self.rate or 0.0))
        self.wanted = min(self.concurrency, self.wanted + TICK * self.needed)
        while self.wanted >= 1 and now >= self.held_until and (self.rate is None or self.budget >= 1):
            self.wanted -= 1
            self.budget -= 1 if self.rate is not None else 0
            self.sent += 1
            self._on_report(now, provider.answer(now))

    def report(self, now: float) -> RateReport | None:
        is_refused = self.rate_limited > self.reported_refusals and now >= self.reported_at + 0.25
        if not is_refused and now < self.reported_at + 1.0:
            return None
        self.reported_at, self.reported_refusals = now, self.rate_limited
        reported = clock_time(self.resume_at) if self.resume_at > now else None
        return RateReport(self.name, "p", self.sent, self.rate_limited, int(self.wanted), reported)

    def apply_quota(self, now: float, rate: float | None, resume_at: float) -> None:
        if rate is not None and self.rate is None:
            self.budget = self.rng.random()
        self.rate = rate
        if resume_at > now:
            self.hold(resume_at)

    def hold(self, until: float) -> None:
        """After it the worker begins at a moment of its own within the time of one request."""
        if until > self.held_until:
            self.held_until = until + self.rng.uniform(0, 1 / self.rate if self.rate else FIRST_BACKOFF)
            self.budget = 1.0

    def _on_report(self, now: float, retry_after: float | None) -> None:
        if retry_after is None:
            self.in_a_row = 0
            return
        self.rate_limited += 1
        if retry_after > 0:
            self.resume_at = max(self.resume_at, now + retry_after)
            self.hold(now + retry_after)
        elif now >= self.held_until:
            self.in_a_row += 1
            longest = min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** (self.in_a_row - 1))
            self.held_until = now + self.rng.uniform(0, longest)


@dataclass
class SimulatedProvider:
    bucket: TokenBucket
    names_a_time: bool
    taken: deque[float] = field(default_factory=deque)
    rate_limited: deque[float] = field(default_factory=deque)

    def answer(self, now: float) -> float | None:
        """None: taken. Else 429, with the seconds to wait in whole numbers as providers do, or with 0."""
        if self.bucket.take(now):
            self.taken.append(now)
            return None
        self.rate_limited.append(now)
        return math.ceil(self.bucket.seconds_to_next(now)) if self.names_a_time else 0.0

    def accepted_per_second(self, start: float, end: float) -> float:
        return sum(start <= at < end for at in self.taken) / (end - start)

    def refused_share(self, start: float, end: float) -> float:
        rate_limited = sum(start <= at < end for at in self.rate_limited)
        return rate_limited / max(1, rate_limited + sum(start <= at < end for at in self.taken))


class SimulatedRateLimits:
    def __init__(self, allowed: float, *, burst: float, names_a_time: bool, workers: int = 10) -> None:
        self.now = 1000.0
        rng = random.Random(1)
        self.provider = SimulatedProvider(TokenBucket.full(allowed, burst, self.now), names_a_time)
        self.workers = [
            SimulatedWorker(f"w{n}", random.Random(n), reported_at=self.now - rng.random())
            for n in range(workers)
        ]
        self.quotas: deque[tuple[float, RateQuota]] = deque()
        self.quota_rate: float | None = None
        self.change_leader()

    def change_leader(self) -> None:
        """The new one has heard nothing; it knows the stored quota."""
        self.meter = RateMeter()
        self.limit = AdaptiveLimit(self.now, self.quota_rate)
        self.round_at = self.now

    def run(self, seconds: float, *, has_leader: bool = True) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += TICK
            self._tick(has_leader=has_leader)

    def _tick(self, *, has_leader: bool) -> None:
        start = self.workers.pop(0)
        self.workers.append(start)
        for worker in self.workers:
            worker.send(self.now, self.provider)
            report = worker.report(self.now)
            if report is not None and has_leader:
                self.meter.record(POOL, report, self.now)
        if has_leader and self.now >= self.round_at:
            self.round_at += ROUND
            self._settle()
        while self.quotas and self.quotas[0][0] <= self.now:
            self._on_report(self.quotas.popleft()[1])

    def _settle(self) -> None:
        quotas = quotas_for(self.meter, self.limit, self.now, clock_time(self.now))
        if POOL in quotas:
            self.quotas.append((self.now + QUOTA_DELAY, quotas[POOL]))

    def _on_report(self, quota: RateQuota) -> None:
        self.quota_rate = quota.requests_per_second
        smallest = min(quota.shares.values(), default=1.0)
        resume_at = quota.resume_at.timestamp() if quota.resume_at else 0.0
        for worker in self.workers:
            share = quota.shares.get(worker.name, smallest)
            worker.apply_quota(
                self.now, None if self.quota_rate is None else self.quota_rate * share, resume_at
            )
