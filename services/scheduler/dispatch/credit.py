"""How many shards of a run may be in flight: enough that no worker waits, few enough to withdraw."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from services.scheduler.planning.shard import MAX_SHARD_SAMPLES


@dataclass(frozen=True, slots=True)
class CreditRule:
    """`floor` makes a run visible before any worker is; `ceiling` bounds what a run may hold of the stream.

    `seconds_ahead`: what the workers get through in that time is on its way to them. The path there and back
    takes longer than a fast model takes for what a worker asks at a time.
    """

    floor: int = 4
    ceiling: int = 256
    seconds_ahead: float = 1.0


@dataclass(frozen=True, slots=True)
class Demand:
    """`capacity`: samples that the pool's live workers take at a time, shared by its `runs`."""

    capacity: int
    runs: int
    samples_per_second: float | None


def capacity_of(concurrencies: Iterable[int]) -> int:
    """A worker takes a whole shard, however few samples it processes at a time."""
    return sum(max(concurrency, MAX_SHARD_SAMPLES) for concurrency in concurrencies)


def worth_sending(credit: int) -> int:
    """Shards that are sent in one go, where more wait: a go costs as much for one as for many.

    Three quarters of the credit are on their way meanwhile, so no worker waits for it.
    """
    return max(credit // 4, 1)


def shard_credit(rule: CreditRule, demand: Demand) -> int:
    for_workers = 2 * demand.capacity / max(demand.runs, 1)
    for_speed = (demand.samples_per_second or 0.0) * rule.seconds_ahead
    wanted = ceil(max(for_workers, for_speed) / MAX_SHARD_SAMPLES)
    return min(max(rule.floor, wanted), rule.ceiling)
