"""The client of a gateway: typed stubs of its services, and what takes more than one call."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from proctor.client.calls import ApiKey, GatewayChannel
from proctor.client.compared_runs import ComparedRuns
from proctor.client.datasets import Upload, upload_once
from proctor.client.errors import Refused, Unreachable
from proctor.client.progress_line import ProgressLine
from proctor.client.projects import number_of_project, project_names
from proctor.client.run_results import RunResults
from proctor.v1 import comparison_service_pb2, rollout_service_pb2, run_pb2
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import FINAL_NUMBERS
from proctor.wire.stubs import ResultsStubs, SchedulerStubs
from proctor.wire.uploads import upload_messages

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How long a watch waits for a lost gateway. `on_lost` is called once per outage."""

    give_up_seconds: float = 60.0
    pause_seconds: float = 0.5
    on_lost: Callable[[], None] | None = None


class ProctorClient(SchedulerStubs, ResultsStubs):
    """An async context manager. Every call raises only ClientError and its subclasses.

    Each attribute is a service of the gateway, with the calls of its contract: such as
    `await client.runs.CancelRun(CancelRunRequest(run_id=…))`.

    `address` is `host:port`, or `https://host:port`: an API key is sent to another machine by TLS only.

    A gateway with API keys takes the user from `api_key`, which may be a function that each call asks for it;
    `user` is the name for one without keys.
    """

    def __init__(
        self, address: str, *, user: str = "", api_key: ApiKey = "", timeout_seconds: float = 30.0
    ) -> None:
        self.address = address
        self._channel = GatewayChannel(address, timeout_seconds, user=user, api_key=api_key)
        SchedulerStubs.__init__(self, self._channel.as_channel())
        ResultsStubs.__init__(self, self._channel.as_channel())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def release(self) -> str:
        """The release of the gateway; empty for one that does not send it. The call is not repeated."""
        return await self._channel.release()

    async def results(self, run_id: str) -> RunResults:
        """The run with its figures, partial while it goes. A notebook shows them as a table."""
        # One after the other: of a run that is nowhere both say so, each in its own words.
        run = await self.run(run_id)
        return RunResults(run, await self.summary(run_id))

    async def evaluate(
        self, order: run_pb2.RunOrder, show: Callable[[run_pb2.Run], None] | None = None
    ) -> RunResults:
        """Orders a run, waits for its end and reads its figures. Raises Refused for a run without figures.

        `show` is called at each change; without it the progress stands on a line of stderr.
        """
        request = scheduler_pb2.SubmitRunRequest(order=order, request_id=str(uuid.uuid4()))
        run = (await self.runs.SubmitRun(request)).run
        show_change = show or ProgressLine().show
        async with aclosing(self.watch_run(run.run_id)) as changes:
            async for run in changes:
                show_change(run)
        if run.state != run_pb2.RUN_STATE_COMPLETED:
            problem = run.error.message or f"The run {run.run_id} was cancelled."
            raise Refused(problem, run.error.reason)
        return await self.results(run.run_id)

    async def compare(self, *runs: RunResults | str, metrics: Sequence[str] = ()) -> ComparedRuns:
        """Two to six runs, or their ids, paired by sample. A notebook shows them as a table."""
        ids = [each.run.run_id if isinstance(each, RunResults) else each for each in runs]
        request = comparison_service_pb2.CompareRunsRequest(run_ids=ids, metrics=metrics)
        return ComparedRuns((await self.comparisons.CompareRuns(request)).comparison)

    async def number_of_project(self, named: int | str) -> int:
        """Of a declared project by its name; a number stays as it is. Raises NotFound."""
        return await number_of_project(self.projects, named)

    async def project_names(self, project_ids: Iterable[int]) -> Mapping[int, str]:
        """The names of the declared ones of some projects, by their numbers."""
        return await project_names(self.projects, project_ids)

    async def upload_dataset(self, upload: Upload) -> dataset_pb2.UploadDatasetResponse:
        """The data set, or the faults of the file, of which nothing is stored then."""
        return await self.datasets.UploadDataset(upload.messages())

    async def upload_dataset_once(self, upload: Upload) -> dataset_pb2.UploadDatasetResponse:
        """Like `upload_dataset`, but content that the user uploaded under this name is not sent again.

        Reads the content twice, so it must be a file, not a pipe.
        """
        return await upload_once(self.datasets, upload)

    async def upload_tasks(
        self, tasks: rollout_service_pb2.TasksHeader, archive: bytes
    ) -> rollout_service_pb2.UploadTasksResponse:
        """Stores task folders, a .tar.gz, for orders that name them by `tasks_digest` within a day."""

        async def parts() -> AsyncGenerator[rollout_service_pb2.TasksHeader | bytes]:
            yield tasks
            yield archive

        return await self.rollouts.UploadTasks(
            upload_messages(rollout_service_pb2.UploadTasksRequest, parts())
        )

    async def watch_run(self, run_id: str, reconnect: Reconnect | None = None) -> AsyncGenerator[run_pb2.Run]:
        """Every change of a run until it is final and closed, across restarts of the gateway."""
        policy = reconnect or Reconnect()
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        request = scheduler_pb2.WatchRunRequest(run_id=run_id)
        while True:
            run = run_pb2.Run()
            try:
                async for response in self.runs.WatchRun(request):
                    lost_at = None
                    run = response.run
                    yield run
                # A gateway that stops ends its streams too: then the watch goes on with another.
                if run.state in FINAL_NUMBERS:
                    return
            except Unreachable as outage:
                if lost_at is not None and loop.time() - lost_at > policy.give_up_seconds:
                    raise
                log.info("watch lost the gateway: %s", outage)
            # The outage counts from its first failure, however often the watch fails in it.
            if lost_at is None:
                lost_at = loop.time()
                if policy.on_lost:
                    policy.on_lost()
            await asyncio.sleep(policy.pause_seconds)
