"""How many rollouts of a group of runs are in flight: an order bounds them over all of its models."""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from proctor.values.run import RunId
from services.scheduler.dispatch.shard_ledger import ShardLedger
from services.scheduler.runs.lifecycle.run import Run


@dataclass(frozen=True, slots=True)
class ParallelBounds:
    """The ledgers of this term by their groups. A shard of such a run is one rollout.

    `lock` is held from asking for room until what is sent is in the ledger, so that two runs do not take the
    same room.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _groups: dict[str, WeakValueDictionary[RunId, ShardLedger]] = field(default_factory=dict)

    def room(self, run: Run, ledger: ShardLedger) -> int | None:
        """The most shards that the run may have in flight now; None where nothing bounds it."""
        group, most = run.order.rollouts_group, run.order.max_parallel
        if not group or most is None:
            return None
        ledgers = self._groups.setdefault(group, WeakValueDictionary())
        ledgers[run.run_id] = ledger
        others = sum(len(other.in_flight) for run_id, other in ledgers.items() if run_id != run.run_id)
        self._forget_ended()
        return max(most - others, 0)

    def _forget_ended(self) -> None:
        """Ledgers go with the drivers of their runs."""
        for group in [name for name, ledgers in self._groups.items() if not ledgers]:
            del self._groups[group]
