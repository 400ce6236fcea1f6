"""Lists runs with their progress: a page of all, or the whole queue."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.names.user import Caller
from proctor.values.run import RunState
from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.admission.run_queue import UserRunCounts
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.ports import RunLists
from services.scheduler.runs.reads.run_list import RunCursor, RunFilter
from services.scheduler.runs.reads.run_snapshot import RunSnapshot
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import Worker


@dataclass(frozen=True, slots=True)
class SnapshotPage:
    snapshots: Sequence[RunSnapshot]
    total: int
    completed: int


@dataclass(frozen=True, slots=True)
class QueueView:
    running: Sequence[RunSnapshot]
    pending: Sequence[RunSnapshot]
    pending_total: int
    paused: Sequence[RunSnapshot]
    workers: Sequence[Worker]
    users: Sequence[UserRunCounts]


@dataclass(frozen=True, slots=True)
class ListRuns:
    lists: RunLists
    count_runs: CountRuns
    forecasts: ForecastQueue
    registry: WorkerRegistry

    async def list_page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> SnapshotPage:
        page = await self.lists.page(wanted, size, after)
        return SnapshotPage(await self.show_brief(page.runs), page.total, page.completed)

    async def show_brief(self, runs: Sequence[Run]) -> Sequence[RunSnapshot]:
        """Some of many runs: without the progress of their tasks and without their changes."""
        waits = await self.forecasts.waits([run for run in runs if run.state is RunState.PENDING])
        counts = await self.count_runs.count_all(runs)
        return [self.count_runs.snapshot(run, counts.get(run.run_id), waits.get(run.run_id)) for run in runs]

    async def list_model_names(self, name: str) -> Sequence[str]:
        """Full names of ordered models that have the name, with their provider or without; "" for all."""
        return await self.lists.model_names(name)

    async def show_queue(self, size: int, caller: Caller) -> QueueView:
        """Returns at most `size` pending and as many paused runs, and all running ones.

        Counts are of all runs, also those that the caller does not see.
        """
        forecast = await self.forecasts.forecast()
        queue = forecast.moment.queue

        def is_seen(run: Run) -> bool:
            return caller.role_in(run.order.project_id) is not None

        pending = [each for each in queue.pending if is_seen(each.run)]
        paused = [run for run in queue.paused if is_seen(run)]
        return QueueView(
            running=[
                self.count_runs.snapshot(run, self.count_runs.known(run))
                for run in filter(is_seen, queue.running)
            ],
            pending=[
                self.count_runs.snapshot(
                    each.run, self.count_runs.known(each.run), forecast.wait(each.run.run_id)
                )
                for each in pending[:size]
            ],
            pending_total=queue.pending_total,
            paused=[self.count_runs.snapshot(run, self.count_runs.known(run)) for run in paused[:size]],
            workers=self.registry.workers(),
            users=queue.users,
        )
