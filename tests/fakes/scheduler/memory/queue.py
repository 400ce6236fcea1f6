"""The queue of the runs in memory, to be looked at."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.run import RunId, RunState
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_estimate import PastRuns
from services.scheduler.runs.admission.run_queue import PendingRun, QueuedRuns, UserRunCounts
from tests.fakes.scheduler.memory.runs import InMemoryRuns


@dataclass
class InMemoryQueue:
    runs: InMemoryRuns
    looks: int = 0

    async def queue(self, limit: int) -> QueuedRuns:
        self.looks += 1
        running = [run for run in self.runs.runs.values() if run.state is RunState.RUNNING]
        order = self.runs.queue_order()
        paused = [run for run in self.runs.runs.values() if run.state is RunState.PAUSED]
        users = sorted({run.user for run in (*running, *order)})
        return QueuedRuns(
            running=running,
            pending=[PendingRun(run, self.runs.queued_at[run.run_id]) for run in order[:limit]],
            pending_total=len(order),
            users=[
                UserRunCounts(
                    user, sum(run.user == user for run in running), sum(run.user == user for run in order)
                )
                for user in users
            ],
            paused=sorted(paused, key=lambda run: self.runs.queued_at[run.run_id], reverse=True)[:limit],
        )

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        self.looks += 1
        order = [run.run_id for run in self.runs.queue_order()]
        return {run_id: order.index(run_id) + 1 for run_id in runs if run_id in order}

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> PastRuns:
        return {
            (benchmark, model): await self.runs.past_runs(benchmark, model) for benchmark, model in wanted
        }

    async def planned_rows(self, benchmarks: Collection[str]) -> Mapping[str, Sequence[PlannedRows]]:
        completed = [run for run in self.runs.runs.values() if run.state is RunState.COMPLETED]
        found: dict[str, list[PlannedRows]] = {benchmark: [] for benchmark in benchmarks}
        for run in reversed(completed):
            samples = {task.task: task.sample_count for task in self.runs.tasks.get(run.run_id, ())}
            rows = PlannedRows(run.order.tasks, run.order.limit, samples)
            found.get(run.order.benchmark, []).append(rows)
        return found
