"""The leader turns rate reports into quotas: a rate for each key, and each worker's share of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, NoReturn, Protocol, TypeVar

from services.common.clock import Clock
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.rate_limits.adaptive_limit import BELOW, AdaptiveLimit
from services.scheduler.rate_limits.rate_meter import (
    FORGET_AFTER_SECONDS,
    Measured,
    RateLimitTracker,
    RateMeter,
    RateQuota,
    SharedKey,
)

# The floor of a quota: a share of the rate limit that workers without recent requests get too.
_MAX_FLOOR = 0.02
# The sum of all floors. With many workers each shrinks, so that four fifths always go by need.
_FLOORS_TOGETHER = 0.2

# A shorter throttle is over before other workers have received it.
_MIN_THROTTLE = timedelta(seconds=1)
log = get_logger()
# Twice as often as workers report, so a report waits half a second at most.
_ROUND_SECONDS = 0.5
# A bucket that was wiped has its quotas again after this time.
_REPEAT_SECONDS = 10.0
# A share that changes by less is not worth a message.
_SMALL_CHANGE = 0.1
W = TypeVar("W")


class QuotaKey(NamedTuple):
    """The workers of a pool follow the quotas of their pool."""

    pool: str
    rate_limit_key: str


class QuotaStore(Protocol):
    """Quotas where workers watch them. A quota holds until it is replaced or deleted."""

    async def put(self, key: QuotaKey, quota: RateQuota) -> None: ...

    async def delete(self, key: QuotaKey) -> None: ...

    async def stored(self) -> Mapping[QuotaKey, RateQuota]: ...


def quota_shares(needed: Mapping[W, float]) -> Mapping[W, float]:
    """Shares by the rate that each worker needs, above a small floor; they sum to 1.

    It includes waiting requests, so that a worker with a small share and a queue catches up within a few
    rounds.
    """
    if not needed:
        return {}
    floor = min(_MAX_FLOOR, _FLOORS_TOGETHER / len(needed))
    above = 1 - floor * len(needed)
    total = sum(needed.values())
    if not total:
        return dict.fromkeys(needed, 1 / len(needed))
    return {worker: floor + above * rate / total for worker, rate in needed.items()}


def quotas_for(
    meter: RateMeter, limit: AdaptiveLimit, now: float, clock_time: datetime
) -> Mapping[str, RateQuota]:
    """By pool: the same limits for each, and the shares of its own workers.

    `now` is the monotonic time by which reports were recorded, `clock_time` the time of day.
    """
    measured = meter.measure(now)
    tokens = measured.allowed_tokens_per_second
    quota = RateQuota(
        # Once for each round: a step changes the limit.
        requests_per_second=limit.step(measured, now),
        tokens_per_second=None if tokens is None else BELOW * tokens,
        resume_at=_long_throttle(measured, clock_time),
    )
    shares: dict[str, dict[str, float]] = {pool: {} for pool in meter.pools}
    for worker, share in quota_shares(meter.needed_rates(now)).items():
        shares[worker.pool][worker.worker_id] = share
    return {pool: replace(quota, shares=of_pool) for pool, of_pool in shares.items()}


def _long_throttle(measured: Measured, clock_time: datetime) -> datetime | None:
    when = measured.resume_at
    return when if when is not None and when > clock_time + _MIN_THROTTLE else None


@dataclass(frozen=True, slots=True)
class _StoredQuota:
    quota: RateQuota
    at: float


@dataclass(frozen=True, slots=True)
class AssignQuotas:
    """The leader's loop. Quotas of an earlier leader hold until reports give better ones."""

    tracker: RateLimitTracker
    store: QuotaStore
    clock: Clock

    async def lead(self) -> NoReturn:
        await every(_ROUND_SECONDS, QuotaAssigner(self).assign_all, name="assign quotas")


class QuotaAssigner:
    """Assigns quotas during one term of leadership."""

    def __init__(self, lead: AssignQuotas) -> None:
        self._lead = lead
        self._limits: dict[SharedKey, AdaptiveLimit] = {}
        # Keys of quotas that workers find, of this leader or an earlier one; None until they are read.
        self._keys: set[QuotaKey] | None = None
        self._stored: dict[QuotaKey, _StoredQuota] = {}
        self._began_at = lead.clock.monotonic()

    async def assign_all(self) -> None:
        now = self._lead.clock.monotonic()
        keys = await self._known_keys(now)
        self._lead.tracker.forget_idle(now)
        meters = self._lead.tracker.meters
        for shared, meter in meters.items():
            limit = self._limits.setdefault(shared, AdaptiveLimit(now))
            for pool, quota in quotas_for(meter, limit, now, self._lead.clock.now()).items():
                await self._store(QuotaKey(pool, shared.rate_limit_key), quota, now)
        keys.update(self._stored)
        for key in [each for each in keys if self._is_unused(each, meters, now)]:
            await self._lead.store.delete(key)
            keys.discard(key)
            self._stored.pop(key, None)
        kept = meters.keys() | map(self._shared, keys)
        self._limits = {shared: limit for shared, limit in self._limits.items() if shared in kept}

    async def _known_keys(self, now: float) -> set[QuotaKey]:
        if self._keys is None:
            stored = await self._lead.store.stored()
            for key, quota in stored.items():
                self._limits[self._shared(key)] = AdaptiveLimit(now, quota.requests_per_second)
            self._keys = set(stored)
        return self._keys

    def _is_unused(self, key: QuotaKey, meters: Mapping[SharedKey, RateMeter], now: float) -> bool:
        # A new leader has no reports yet: without a meter a key of the earlier one may be in use.
        is_known = key in self._stored or now - self._began_at >= FORGET_AFTER_SECONDS
        return is_known and self._shared(key) not in meters

    def _shared(self, key: QuotaKey) -> SharedKey:
        """A pool that the pools file has no more is a group of its own."""
        return SharedKey(self._lead.tracker.groups.get(key.pool, key.pool), key.rate_limit_key)

    async def _store(self, key: QuotaKey, quota: RateQuota, now: float) -> None:
        stored = self._stored.get(key)
        # Most keys are never limited; without a quota workers send as they like.
        if stored is None and not quota.has_limit:
            return
        if stored is not None and now < stored.at + _REPEAT_SECONDS and _is_close(stored.quota, quota):
            return
        await self._lead.store.put(key, quota)
        if stored is None or stored.quota.requests_per_second != quota.requests_per_second:
            rate = quota.requests_per_second
            log.info(
                "quota assigned", pool=key.pool, rate_limit_key=key.rate_limit_key, requests_per_second=rate
            )
        self._stored[key] = _StoredQuota(quota, now)


def _is_close(one: RateQuota, other: RateQuota) -> bool:
    limits = [(each.requests_per_second, each.tokens_per_second, each.resume_at) for each in (one, other)]
    return limits[0] == limits[1] and _are_close(one.shares, other.shares)


def _are_close(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(abs(share - other[worker]) <= _SMALL_CHANGE * share for worker, share in one.items())
