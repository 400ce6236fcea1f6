"""Rate reports of all workers under one key, added up."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from services.scheduler.rate_limits.rate_report import RateReport

# Over so long a rate is taken. Reports come each second, and more often from those that are refused.
_WINDOW_SECONDS = 3.0
_SHORTEST_SECONDS = 0.2
# Who reports asks at least once a second, so who is silent for so long asks nothing.
_SILENT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Measured:
    """As of one moment, over all workers. `refused` counts since the meter began."""

    taken_per_second: float = 0.0
    refused: int = 0
    waiting: int = 0
    allowed_requests: float | None = None
    allowed_tokens: float | None = None
    resume_at: datetime | None = None


class _WorkerMeter:
    def __init__(self) -> None:
        self.marks: deque[tuple[float, RateReport]] = deque()

    def record(self, report: RateReport, now: float) -> int:
        """Gives the refusals that are new."""
        known = self.latest
        while self.marks and self.marks[0][0] < now - _WINDOW_SECONDS:
            self.marks.popleft()
        self.marks.append((now, report))
        return max(0, report.refused - known.refused) if known else 0

    @property
    def latest(self) -> RateReport | None:
        return self.marks[-1][1] if self.marks else None

    def taken_per_second(self) -> float:
        """Between two of its own reports, so that it does not matter when they come."""
        (start, first), (end, last) = self.marks[0], self.marks[-1]
        return (last.taken - first.taken) / (end - start) if end - start >= _SHORTEST_SECONDS else 0.0

    def is_silent(self, now: float) -> bool:
        return self.marks[-1][0] < now - _SILENT_SECONDS


class RateMeter:
    """One per pace, as long as anybody reports."""

    def __init__(self) -> None:
        self.reported_at = float("-inf")
        self._workers: dict[str, _WorkerMeter] = {}
        self._refused = 0

    def record(self, report: RateReport, now: float) -> None:
        self._refused += self._workers.setdefault(report.worker_id, _WorkerMeter()).record(report, now)
        self.reported_at = now

    def measure(self, now: float) -> Measured:
        live = self.forget_silent(now)
        reports = [worker.latest for worker in live.values() if worker.latest]
        resumptions = [report.resume_at for report in reports if report.resume_at]
        return Measured(
            taken_per_second=sum(worker.taken_per_second() for worker in live.values()),
            refused=self._refused,
            waiting=sum(report.waiting for report in reports),
            allowed_requests=_least(report.allowed_requests for report in reports),
            allowed_tokens=_least(report.allowed_tokens for report in reports),
            resume_at=max(resumptions, default=None),
        )

    def demands(self, now: float) -> Mapping[str, float]:
        """Worker to what it asks for: what it sends in a second and what waits there."""
        return {
            worker_id: max(0.0, worker.taken_per_second()) + (worker.latest.waiting if worker.latest else 0)
            for worker_id, worker in self.forget_silent(now).items()
        }

    def forget_silent(self, now: float) -> Mapping[str, _WorkerMeter]:
        """Gives those that are left."""
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
        self._meters.setdefault(report.pace, RateMeter()).record(report, now)

    def forget_idle(self, now: float) -> None:
        """Drops paces that nobody reported of for ten minutes, and workers that are silent."""
        oldest = now - FORGET_AFTER_SECONDS
        self._meters = {pace: meter for pace, meter in self._meters.items() if meter.reported_at >= oldest}
        for meter in self._meters.values():
            meter.forget_silent(now)
