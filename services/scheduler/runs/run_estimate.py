"""How long a run will take, told from runs of the same model and suite that have ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.scheduler.runs.run_order import RunOrder


@dataclass(frozen=True, slots=True)
class PastRun:
    """A completed run: what was ordered, how many outcomes it had and how long it took."""

    tasks: tuple[str, ...]
    limit: int | None
    rollouts: int
    total: int
    seconds: float


def estimated_seconds(order: RunOrder, history: Sequence[PastRun], rounds_ahead: int) -> float | None:
    """Measured throughput × the size of the order, once more for each round of the queue before it.

    `rounds_ahead` is how often all places of the running runs must get free before this run's turn.
    """
    outcomes = _expected_outcomes(order, history)
    total = sum(past.total for past in history)
    if outcomes is None or total == 0:
        return None
    seconds = outcomes * sum(past.seconds for past in history) / total
    return seconds * (1 + rounds_ahead)


def _expected_outcomes(order: RunOrder, history: Sequence[PastRun]) -> float | None:
    same = [past for past in history if set(past.tasks) == set(order.tasks) and past.limit == order.limit]
    if same:
        return same[0].total / same[0].rollouts * order.rollouts
    if order.limit is not None and order.tasks:
        return order.limit * len(order.tasks) * order.rollouts
    return None
