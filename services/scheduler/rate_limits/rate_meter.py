"""Rate reports of workers, added up by key and by run, and the quotas that answer them."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from proctor.values.providers.worker import MAX_POOL_WORKERS

# Rates are means over this time. Workers report each second, and more often when they are rate limited.
_WINDOW_SECONDS = 3.0
# Two reports that arrive closer than this would make a rate out of single requests.
_MIN_SECONDS = 0.2
# A worker that sends requests reports at least once a second; a silent one sends none.
_SILENT_SECONDS = 5.0
# Longer than the pauses between runs of one user, so that a limit which was found is kept.
FORGET_AFTER_SECONDS = 600.0
# A small run must survive an ordinary outage of its provider, in which each sample fails a few times.
MIN_REQUEST_RETRIES = 100
# Far above the runs at a time; it bounds the memory of a leader that lives for months.
_MAX_CACHED_RUNS = 1000
# As many as a worker knows: the pool's own key, and one for each server that orders name.
_MAX_GROUP_KEYS = 257
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class WorkerOfPool(NamedTuple):
    """Workers name themselves, and NATS lets them name their own pool only."""

    pool: str
    worker_id: str


class SharedKey(NamedTuple):
    """An API key, or a server that is asked without one, which the pools of a group share."""

    group: str
    rate_limit_key: str


@dataclass(frozen=True, slots=True)
class RateReport:
    """Counts are since the worker started, so a lost report does no harm."""

    worker_id: str
    rate_limit_key: str
    sent: int = 0
    rate_limited: int = 0
    requests_waiting_for_quota: int = 0
    resume_at: datetime | None = None
    allowed_requests_per_second: float | None = None
    allowed_tokens_per_second: float | None = None
    request_retries: Mapping[str, int] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        """Requests that were not rate limited so far: a 429 comes at once, an answer may take minutes."""
        return self.sent - self.rate_limited


@dataclass(frozen=True, slots=True)
class RateQuota:
    """Limits per second of all workers together, None if none is known. `shares` are those of the workers."""

    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    resume_at: datetime | None = None

    @property
    def has_limit(self) -> bool:
        limits = (self.requests_per_second, self.tokens_per_second, self.resume_at)
        return any(limit is not None for limit in limits)


@dataclass(frozen=True, slots=True)
class Measured:
    """All workers together at one moment. `rate_limited` counts since the meter was made."""

    accepted_per_second: float = 0.0
    rate_limited: int = 0
    requests_waiting_for_quota: int = 0
    allowed_requests_per_second: float | None = None
    allowed_tokens_per_second: float | None = None
    resume_at: datetime | None = None


class _WorkerMeter:
    def __init__(self) -> None:
        self.marks: deque[tuple[float, RateReport]] = deque()

    def record(self, report: RateReport, now: float) -> int:
        """Returns how many requests were rate limited since the last report."""
        known = self.latest
        while self.marks and self.marks[0][0] < now - _WINDOW_SECONDS:
            self.marks.popleft()
        self.marks.append((now, report))
        # The first report counts from the worker's start, which may be long ago.
        return max(0, report.rate_limited - known.rate_limited) if known else 0

    @property
    def latest(self) -> RateReport | None:
        return self.marks[-1][1] if self.marks else None

    def accepted_per_second(self) -> float:
        """Computed between two reports of the worker itself, so delays of messages do not matter."""
        (start, first), (end, last) = self.marks[0], self.marks[-1]
        return (last.accepted - first.accepted) / (end - start) if end - start >= _MIN_SECONDS else 0.0

    def is_silent(self, now: float) -> bool:
        return self.marks[-1][0] < now - _SILENT_SECONDS


class RateMeter:
    """The reports about one key, by pool and worker. Pools that are silent are known for as long as it is."""

    def __init__(self) -> None:
        self.reported_at = float("-inf")
        self._pools: dict[str, dict[str, _WorkerMeter]] = {}
        self._rate_limited = 0

    @property
    def pools(self) -> Iterable[str]:
        return self._pools

    def record(self, pool: str, report: RateReport, now: float) -> None:
        worker = _latest(self._pools.setdefault(pool, {}), report.worker_id, _WorkerMeter, MAX_POOL_WORKERS)
        self._rate_limited += worker.record(report, now)
        self.reported_at = now

    def measure(self, now: float) -> Measured:
        live = self.forget_silent(now)
        reports = [worker.latest for worker in live.values() if worker.latest]
        resumptions = [report.resume_at for report in reports if report.resume_at]
        return Measured(
            accepted_per_second=sum(worker.accepted_per_second() for worker in live.values()),
            rate_limited=self._rate_limited,
            requests_waiting_for_quota=sum(report.requests_waiting_for_quota for report in reports),
            # The least: a lower limit came last, or to a part of the workers only.
            allowed_requests_per_second=_least(report.allowed_requests_per_second for report in reports),
            allowed_tokens_per_second=_least(report.allowed_tokens_per_second for report in reports),
            # The latest: all workers use one key, and its provider throttles all of them.
            resume_at=max(resumptions, default=None),
        )

    def needed_rates(self, now: float) -> Mapping[WorkerOfPool, float]:
        """The rate that each worker needs: what it sends in a second and what waits there."""
        return {
            name: max(0.0, worker.accepted_per_second())
            + (worker.latest.requests_waiting_for_quota if worker.latest else 0)
            for name, worker in self.forget_silent(now).items()
        }

    def forget_silent(self, now: float) -> Mapping[WorkerOfPool, _WorkerMeter]:
        """Returns the other workers."""
        self._pools = {
            pool: {name: worker for name, worker in workers.items() if not worker.is_silent(now)}
            for pool, workers in self._pools.items()
        }
        return dict(self._live())

    def _live(self) -> Iterator[tuple[WorkerOfPool, _WorkerMeter]]:
        for pool, workers in self._pools.items():
            for name, worker in workers.items():
                yield WorkerOfPool(pool, name), worker


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


class RateLimitTracker:
    """Reports by group and key. `groups` has the group of each pool (`key_groups`)."""

    def __init__(self, groups: Mapping[str, str]) -> None:
        self.groups = groups
        # The key with the oldest report comes first.
        self._meters: dict[str, dict[str, RateMeter]] = {}

    @property
    def meters(self) -> Mapping[SharedKey, RateMeter]:
        found = ((group, meters.items()) for group, meters in self._meters.items())
        return {SharedKey(group, key): meter for group, meters in found for key, meter in meters}

    def record(self, pool: str, report: RateReport, now: float) -> None:
        """Raises KeyError for a pool that has no group."""
        meters = self._meters.setdefault(self.groups[pool], {})
        _latest(meters, report.rate_limit_key, RateMeter, _MAX_GROUP_KEYS).record(pool, report, now)

    def forget_idle(self, now: float) -> None:
        """Drops keys without reports for ten minutes, and silent workers."""
        oldest = now - FORGET_AFTER_SECONDS
        for group, meters in self._meters.items():
            self._meters[group] = {key: each for key, each in meters.items() if each.reported_at >= oldest}
        for meter in self.meters.values():
            meter.forget_silent(now)


class RequestRetryBudget:
    """A share of the run's samples, at least a hundred, for each epoch.

    Counts of workers that have stopped are kept. A new leader starts to count where it is elected, so each
    change of leader may give a run one budget more.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        # By pool and run, so that no pool has a part in what is known of the runs of another.
        self._counts: dict[str, dict[str, dict[tuple[str, str], int]]] = {}
        self._spent_before: dict[str, tuple[int, int]] = {}

    def record(self, pool: str, report: RateReport) -> None:
        runs = self._counts.setdefault(pool, {})
        for run_id, count in report.request_retries.items():
            counts = runs.setdefault(run_id, {})
            counts[report.rate_limit_key, report.worker_id] = count
            _forget_first(counts, MAX_POOL_WORKERS)
        _forget_first(runs, _MAX_CACHED_RUNS)

    def is_spent(self, pool: str, run_id: str, epoch: int, total: int) -> bool:
        """Whether a run of `total` samples has used its budget, which begins with the epoch's first call.

        `pool` is the one that the run is dispatched to. What other pools report of the run does not count.
        """
        spent = sum(self._counts.get(pool, {}).get(run_id, {}).values())
        known_epoch, before = self._spent_before.get(run_id, (0, 0))
        if known_epoch != epoch:
            before = spent
            self._spent_before[run_id] = (epoch, before)
            _forget_first(self._spent_before, _MAX_CACHED_RUNS)
        return spent - before > max(MIN_REQUEST_RETRIES, self._share * total)


def _latest(known: dict[K, T], key: K, make: Callable[[], T], limit: int) -> T:
    """The value of the key, made if needed, which becomes the last one. Drops the first beyond the limit."""
    value = known[key] = known.pop(key, None) or make()
    _forget_first(known, limit)
    return value


def _forget_first(known: dict[K, T], limit: int) -> None:
    while len(known) > limit:
        del known[next(iter(known))]


@dataclass(frozen=True, slots=True)
class ProviderRate:
    """One provider and API key. Limits are per second, None where its headers name none.

    `rate_limited` counts requests that got a 429 while the provider is asked. `resume_at` is in the future.
    """

    pools: tuple[str, ...]
    requests_per_second: float
    requests_waiting_for_quota: int
    rate_limited: int
    allowed_requests_per_second: float | None
    allowed_tokens_per_second: float | None
    resume_at: datetime | None


def provider_rates(tracker: RateLimitTracker, now: float, clock_time: datetime) -> list[ProviderRate]:
    """Rates of providers that are asked now, by their pools."""
    rates = [_rate(meter, now, clock_time) for meter in tracker.meters.values()]
    return sorted((rate for rate in rates if rate.pools), key=lambda rate: rate.pools)


def _rate(meter: RateMeter, now: float, clock_time: datetime) -> ProviderRate:
    measured = meter.measure(now)
    resume_at = measured.resume_at
    return ProviderRate(
        pools=tuple(sorted({worker.pool for worker in meter.needed_rates(now)})),
        requests_per_second=max(measured.accepted_per_second, 0.0),
        requests_waiting_for_quota=measured.requests_waiting_for_quota,
        rate_limited=measured.rate_limited,
        allowed_requests_per_second=measured.allowed_requests_per_second,
        allowed_tokens_per_second=measured.allowed_tokens_per_second,
        resume_at=resume_at if resume_at and resume_at > clock_time else None,
    )
