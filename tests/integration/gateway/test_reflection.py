"""Discovery by a client that has only the address: services and messages by reflection, health by name."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from proctor.v1 import queue_service_pb2 as queue_pb2
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

T = TypeVar("T")

PUBLIC = {
    f"proctor.v1.{topic}Service"
    for topic in (
        "Scheduler",
        "Suite",
        "Queue",
        "Dataset",
        "File",
        "Batch",
        "Results",
        "Comparison",
        "Leaderboard",
        "Rescore",
        "Export",
    )
}


class Stranger:
    """Knows no contract: everything is asked of the server, as grpcurl does it."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._database = ProtoReflectionDescriptorDatabase(self._channel)
        self._pool = DescriptorPool(self._database)

    def services(self) -> set[str]:
        return set(self._database.get_services())

    def methods(self, service: str) -> list[str]:
        return [method.name for method in self._pool.FindServiceByName(service).methods]

    def call(self, service: str, method: str, **request: Any) -> dict[str, Any]:
        described = self._pool.FindServiceByName(service).FindMethodByName(method)
        asked = message_factory.GetMessageClass(described.input_type)(**request)
        call: Callable[..., Any] = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(described.output_type).FromString,
        )
        return json_format.MessageToDict(call(asked, timeout=5), descriptor_pool=self._pool)

    def health(self, service: str) -> int:
        check: Callable[..., health_pb2.HealthCheckResponse] = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        return check(health_pb2.HealthCheckRequest(service=service), timeout=5).status

    def close(self) -> None:
        self._channel.close()


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(grpc_reflection=True) as running:
        yield running


async def asked(harness: GatewayHarness, ask: Callable[[Stranger], T]) -> T:
    """In a thread: the library that reads reflection waits for its answers."""

    def work() -> T:
        stranger = Stranger(harness.grpc)
        try:
            return ask(stranger)
        finally:
            stranger.close()

    return await asyncio.to_thread(work)


async def test_stranger_lists_the_public_services_and_describes_each(harness: GatewayHarness) -> None:
    def ask(stranger: Stranger) -> dict[str, list[str]]:
        ours = {name for name in stranger.services() if name.startswith("proctor.")}
        return {name: stranger.methods(name) for name in ours}

    described = await asked(harness, ask)
    assert set(described) >= PUBLIC
    assert "proctor.v1.RequestCountService" not in described
    assert described["proctor.v1.QueueService"] == ["GetQueue", "GetLimits", "SetLimits"]
    assert {"SubmitRun", "DeleteRun", "PauseRun", "WatchRun"} <= set(described["proctor.v1.SchedulerService"])


async def test_stranger_asks_for_models_and_the_queue(harness: GatewayHarness) -> None:
    harness.scheduler.queue.queue = queue_pb2.GetQueueResponse(pending_total=7)
    models = await asked(harness, lambda stranger: stranger.call("proctor.v1.SchedulerService", "ListModels"))
    assert [model["model"] for model in models["models"]]
    queue = await asked(
        harness, lambda stranger: stranger.call("proctor.v1.QueueService", "GetQueue", page_size=3)
    )
    assert queue == {"pendingTotal": "7"}
    assert [request.page_size for request in harness.scheduler.queue.asked] == [3]


async def test_health_is_reported_of_the_whole_and_of_each_service(harness: GatewayHarness) -> None:
    def ask(stranger: Stranger) -> set[int]:
        return {stranger.health(service) for service in ("", *PUBLIC)}

    assert await asked(harness, ask) == {health_pb2.HealthCheckResponse.SERVING}
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        await asked(harness, lambda stranger: stranger.health("proctor.v1.RequestCountService"))


async def test_what_is_internal_is_not_offered(harness: GatewayHarness) -> None:
    service = "proctor.v1.RequestCountService"
    with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
        await asked(harness, lambda stranger: stranger.call(service, "CountRequest"))


async def test_services_are_described_only_where_an_operator_says_so() -> None:
    async with gateway_harness() as plain:
        with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
            await asked(plain, lambda stranger: stranger.services())
