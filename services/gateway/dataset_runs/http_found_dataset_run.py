"""The run that a path or a query names by its "bm_…"."""

from proctor.v1 import run_pb2
from services.common.errors import ErrorKind, RemoteError
from services.gateway.dataset_runs.http_dataset_run_id import benchmark_id
from services.gateway.errors import DatasetRunNotFound
from services.gateway.grpc_scheduler import SchedulerBackend


async def found_dataset_run(scheduler: SchedulerBackend, run_id: str) -> run_pb2.Run:
    """One over a data set: that of a suite is none here, whatever it is called."""
    try:
        run = await scheduler.get_run(run_id)
    except RemoteError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id)) from error
        raise
    if not run.order.dataset_id:
        raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id))
    return run
