"""What the client sends again while its gateway is away, and what it sends once."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from proctor.client.errors import Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc


class StartingGateway(scheduler_grpc.SchedulerServiceServicer):
    """Away for the first call of each kind, as a gateway whose answer was lost."""

    def __init__(self) -> None:
        self.received: dict[str, list[Any]] = {}

    async def SubmitRun(self, request: Any, context: Any) -> scheduler_pb2.SubmitRunResponse:  # noqa: N802  # as in the contract
        await self._lose_the_first(request, context)
        return scheduler_pb2.SubmitRunResponse(run=run_pb2.Run(run_id="r1"))

    async def CancelRun(self, request: Any, context: Any) -> scheduler_pb2.CancelRunResponse:  # noqa: N802  # same
        await self._lose_the_first(request, context)
        return scheduler_pb2.CancelRunResponse()

    async def _lose_the_first(self, request: Any, context: Any) -> None:
        received = self.received.setdefault(type(request).__name__, [])
        received.append(request)
        if len(received) == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "it starts")


@pytest.fixture
async def gateway() -> AsyncIterator[tuple[StartingGateway, str]]:
    server = grpc.aio.server()
    servicer = StartingGateway()  # type: ignore[abstract]  # the other calls are not implemented
    scheduler_grpc.add_SchedulerServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield servicer, f"127.0.0.1:{port}"
    await server.stop(0)


async def test_an_order_that_is_sent_again_is_the_same_order(gateway: tuple[StartingGateway, str]) -> None:
    servicer, address = gateway
    order = scheduler_pb2.SubmitRunRequest(order=run_pb2.RunOrder(suite="glue"))
    async with ProctorClient(address) as client:
        assert (await client.runs.SubmitRun(order)).run.run_id == "r1"
    first, again = servicer.received["SubmitRunRequest"]
    assert first == again
    assert first.request_id
    # The caller's own message is not changed: sent once more, it is another order.
    assert not order.request_id


async def test_a_cancel_whose_answer_was_lost_is_not_sent_again(
    gateway: tuple[StartingGateway, str],
) -> None:
    servicer, address = gateway
    async with ProctorClient(address) as client:
        with pytest.raises(Unreachable, match="No gateway answers"):
            await client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id="r1"))
    assert len(servicer.received["CancelRunRequest"]) == 1
