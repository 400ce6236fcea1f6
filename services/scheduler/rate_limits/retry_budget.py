"""How many requests of a run may be retried after failures other than rate limits."""

from typing import TypeVar

from services.scheduler.rate_limits.rate_report import RateReport

_LEAST = 100
_REMEMBERED_RUNS = 1000

T = TypeVar("T")


class RetryBudget:
    """A share of the run's samples, at least a hundred, for each epoch.

    Counts of workers that have stopped are kept. A new leader starts to count where it is elected, so each
    change of leader may give a run one budget more.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._counts: dict[str, dict[tuple[str, str], int]] = {}
        self._spent_before: dict[str, tuple[int, int]] = {}

    def record(self, report: RateReport) -> None:
        for run_id, count in report.retries.items():
            self._counts.setdefault(run_id, {})[report.rate_limit_key, report.worker_id] = count
        _forget_first(self._counts)

    def is_spent(self, run_id: str, epoch: int, total: int) -> bool:
        """Of a run of `total` samples. The budget of an epoch begins with the first call for it."""
        spent = sum(self._counts.get(run_id, {}).values())
        known_epoch, before = self._spent_before.get(run_id, (0, 0))
        if known_epoch != epoch:
            before = spent
            self._spent_before[run_id] = (epoch, before)
            _forget_first(self._spent_before)
        return spent - before > max(_LEAST, self._share * total)


def _forget_first(known: dict[str, T]) -> None:
    while len(known) > _REMEMBERED_RUNS:
        del known[next(iter(known))]
