"""How many samples an order has, by the tasks of earlier runs of any model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.scheduler.runs.orders.run_order import RunOrder


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """Samples of one rollout of a planned run by task; `tasks` and `limit` are as it was ordered."""

    tasks: tuple[str, ...]
    limit: int | None
    samples: Mapping[str, int]


def expected_samples(order: RunOrder, planned: Sequence[PlannedRows]) -> int | None:
    """The samples of one rollout, by runs on the same benchmark, the latest first.

    None if no run had all tasks where the order names none, or all rows of a task where it has no limit.
    """
    tasks = order.tasks or next((tuple(each.samples) for each in planned if not each.tasks), ())
    counts = [_expected_rows(task, order.limit, planned) for task in tasks]
    known = [count for count in counts if count is not None]
    return sum(known) if tasks and len(known) == len(counts) else None


def _expected_rows(task: str, limit: int | None, planned: Sequence[PlannedRows]) -> int | None:
    whole = (
        each.samples[task]
        for each in planned
        # A limit that was not reached cut nothing off.
        if task in each.samples and (each.limit is None or each.samples[task] < each.limit)
    )
    known = next(whole, None)
    # Where no run had all rows, the limit is the most.
    return limit if known is None else known if limit is None else min(known, limit)
