"""Rate reports of all workers under one key, added up."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from services.scheduler.rate_limits.rate_report import RateReport

# Rates are means over this time. Workers report each second, and more often when they are rate limited.
_WINDOW_SECONDS = 3.0
_SHORTEST_SECONDS = 0.2
# A worker that sends requests reports at least once a second; a silent one sends none.
_SILENT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Measured:
    """All workers together at one moment. `rate_limited` counts since the meter was made."""

    accepted_per_second: float = 0.0
    rate_limited: int = 0
    waiting: int = 0
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
        return max(0, report.rate_limited - known.rate_limited) if known else 0

    @property
    def latest(self) -> RateReport | None:
        return self.marks[-1][1] if self.marks else None

    def accepted_per_second(self) -> float:
        """Computed between two reports of the worker itself, so delays of messages do not matter."""
        (start, first), (end, last) = self.marks[0], self.marks[-1]
        return (last.accepted - first.accepted) / (end - start) if end - start >= _SHORTEST_SECONDS else 0.0

    def is_silent(self, now: float) -> bool:
        return self.marks[-1][0] < now - _SILENT_SECONDS


class RateMeter:
    """The reports about one key."""

    def __init__(self) -> None:
        self.reported_at = float("-inf")
        self._workers: dict[str, _WorkerMeter] = {}
        self._rate_limited = 0

    def record(self, report: RateReport, now: float) -> None:
        self._rate_limited += self._workers.setdefault(report.worker_id, _WorkerMeter()).record(report, now)
        self.reported_at = now

    def measure(self, now: float) -> Measured:
        live = self.forget_silent(now)
        reports = [worker.latest for worker in live.values() if worker.latest]
        resumptions = [report.resume_at for report in reports if report.resume_at]
        return Measured(
            accepted_per_second=sum(worker.accepted_per_second() for worker in live.values()),
            rate_limited=self._rate_limited,
            waiting=sum(report.waiting for report in reports),
            allowed_requests_per_second=_least(report.allowed_requests_per_second for report in reports),
            allowed_tokens_per_second=_least(report.allowed_tokens_per_second for report in reports),
            resume_at=max(resumptions, default=None),
        )

    def demands(self, now: float) -> Mapping[str, float]:
        """Each worker's demand: what it sends in a second and what waits there."""
        return {
            worker_id: max(0.0, worker.accepted_per_second())
            + (worker.latest.waiting if worker.latest else 0)
            for worker_id, worker in self.forget_silent(now).items()
        }

    def forget_silent(self, now: float) -> Mapping[str, _WorkerMeter]:
        """Returns the other workers."""
        self._workers = {name: worker for name, worker in self._workers.items() if not worker.is_silent(now)}
        return self._workers


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


FORGET_AFTER_SECONDS = 600.0


class RateLimitTracker:
    def __init__(self) -> None:
        self._meters: dict[str, RateMeter] = {}

    @property
    def meters(self) -> Mapping[str, RateMeter]:
        return self._meters

    def record(self, report: RateReport, now: float) -> None:
        self._meters.setdefault(report.rate_limit_key, RateMeter()).record(report, now)

    def forget_idle(self, now: float) -> None:
        """Drops keys without reports for ten minutes, and silent workers."""
        oldest = now - FORGET_AFTER_SECONDS
        self._meters = {key: meter for key, meter in self._meters.items() if meter.reported_at >= oldest}
        for meter in self._meters.values():
            meter.forget_silent(now)
