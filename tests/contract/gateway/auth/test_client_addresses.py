"""The address of a caller, on both doors: that of the client behind a trusted proxy, else of the peer."""

import aiohttp
import pytest

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from services.common.grpc.caller import caller_of
from services.common.grpc.client import open_channel
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

FORWARDED = "198.51.100.1, 203.0.113.9"


async def addresses(harness: GatewayHarness) -> list[str]:
    """As the scheduler is told them: of a call of REST, then of gRPC."""
    harness.scheduler.metadata.clear()
    url, headers = f"{harness.http}/api/v1/benchmarking/results", {"X-Forwarded-For": FORWARDED}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        assert answer.status == 200
    async with open_channel(harness.grpc) as channel:
        stub: scheduler_grpc.SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(channel)
        metadata = (("x-forwarded-for", FORWARDED),)
        await stub.ListRuns(scheduler_pb2.ListRunsRequest(), metadata=metadata)
    return [caller_of(each.items()).address for each in harness.scheduler.metadata]


@pytest.mark.parametrize(
    ("proxies", "address"),
    [(["127.0.0.0/8"], "203.0.113.9"), (["10.0.0.0/8"], "127.0.0.1"), ([], "127.0.0.1")],
)
async def test_only_a_trusted_proxy_says_whom_it_is_called_by(proxies: list[str], address: str) -> None:
    async with gateway_harness(trusted_proxies=proxies) as harness:
        assert await addresses(harness) == [address, address]
