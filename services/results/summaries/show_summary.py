"""Shows the summary of a run: the stored one, or the figures so far.

Figures of a run under way are computed once for all callers, and kept the longer the more they cost.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from services.common.clock import Clock
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.summaries.ports import SummaryStore
from services.results.summaries.run_summary import RunSummary

# Pages of a run ask for figures this often.
MIN_CACHED_SECONDS = 3.0
# Polling a large run all the time costs at most a tenth of a core.
CACHED_PER_SECOND_OF_COMPUTING = 10.0
# Bounds the memory; the figures of a run that is pushed out are computed anew.
MAX_CACHED_RUNS = 64

Compute = Callable[[RunRecord], Coroutine[object, object, RunSummary]]


@dataclass(slots=True)
class _Partial:
    """The figures of an epoch, computed or in computation."""

    epoch: int
    computing: asyncio.Task[RunSummary]
    kept_until: float = math.inf


@dataclass(frozen=True, slots=True)
class PartialSummaries:
    compute: Compute
    clock: Clock
    _partials: OrderedDict[str, _Partial] = field(init=False, default_factory=OrderedDict)

    async def of(self, record: RunRecord) -> RunSummary:
        """A caller that is cancelled does not cancel the computation for the others."""
        partial = self._partials.get(record.plan.run_id)
        if partial is None or partial.epoch != record.epoch or self.clock.monotonic() >= partial.kept_until:
            partial = self._start(record)
        # Shielded: the next caller waits for the same task.
        return await asyncio.shield(partial.computing)

    def _start(self, record: RunRecord) -> _Partial:
        run_id, started = record.plan.run_id, self.clock.monotonic()
        computing = asyncio.create_task(self.compute(record), name=f"summarize {run_id}")
        partial = _Partial(record.epoch, computing)
        partial.computing.add_done_callback(lambda _: self._keep(partial, started))
        self._partials[run_id] = partial
        self._partials.move_to_end(run_id)
        if len(self._partials) > MAX_CACHED_RUNS:
            self._partials.popitem(last=False)
        return partial

    def _keep(self, partial: _Partial, started: float) -> None:
        """A failure is raised to the callers that wait, and not kept."""
        now, computing = self.clock.monotonic(), partial.computing
        is_failed = computing.cancelled() or computing.exception() is not None
        cost = CACHED_PER_SECOND_OF_COMPUTING * (now - started)
        partial.kept_until = now if is_failed else now + max(MIN_CACHED_SECONDS, cost)


@dataclass(frozen=True, slots=True)
class ShowSummary:
    records: RunRecordStore
    summaries: SummaryStore
    partials: PartialSummaries

    async def show(self, run_id: str) -> RunSummary:
        """The summary stored by the close, or the figures so far, which may be some seconds old."""
        record = await self.records.get(run_id)
        return await self.summaries.find(run_id, record.epoch) or await self.partials.of(record)
