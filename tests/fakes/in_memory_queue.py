"""The queue of the runs in memory, to be looked at."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from services.scheduler.runs.run import Run, RunId, RunState
from services.scheduler.runs.run_estimate import History
from services.scheduler.runs.run_queue import QueuedRuns, UserShare, WaitingRun
from tests.fakes.in_memory_runs import InMemoryRuns


@dataclass
class InMemoryQueue:
    runs: InMemoryRuns
    looks: int = 0

    async def queue(self, most: int) -> QueuedRuns:
        self.looks += 1
        running = [run for run in self.runs.runs.values() if run.state is RunState.RUNNING]
        order = self.runs.queue_order()
        users = sorted({run.user for run in (*running, *order)})
        return QueuedRuns(
            running=running,
            waiting=[WaitingRun(run, self.runs.queued_at[run.run_id]) for run in order[:most]],
            waiting_total=len(order),
            users=[
                UserShare(
                    user, sum(run.user == user for run in running), sum(run.user == user for run in order)
                )
                for user in users
            ],
        )

    async def position(self, run_id: RunId) -> int:
        turns = [run.run_id for run in self.runs.queue_order()]
        return turns.index(run_id) + 1 if run_id in turns else 0

    async def paused(self, most: int) -> Sequence[Run]:
        paused = [run for run in self.runs.runs.values() if run.state is RunState.PAUSED]
        return sorted(paused, key=lambda run: self.runs.queued_at[run.run_id], reverse=True)[:most]

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> History:
        return {(suite, model): await self.runs.past_runs(suite, model) for suite, model in wanted}
