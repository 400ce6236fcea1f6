"""The suites that a gateway knows."""

from collections.abc import Sequence

from proctor.client.errors import NotFound
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2

_DATASET_PREFIX = "ds_"


async def listed_suites(client: ProctorClient) -> Sequence[scheduler_pb2.SuiteInfo]:
    return (await client.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites


async def refuse_unknown_benchmark(client: ProctorClient, benchmark: str) -> None:
    """Raises NotFound for a suite, or the id of a data set in its place, that does not exist.

    Called after an empty search: runs of a suite that was removed can still be found.
    """
    if benchmark.startswith(_DATASET_PREFIX):
        await client.datasets.GetDataset(dataset_pb2.GetDatasetRequest(dataset_id=benchmark))
        return
    known = [listed.suite for listed in await listed_suites(client)]
    if benchmark and benchmark not in known:
        raise NotFound(f"There is no suite {benchmark}. There are: {', '.join(known)}.", "UNKNOWN_SUITE")
