"""The health of scheduler and results, as their replicas report it."""

import asyncio
from collections.abc import Mapping

import grpc
from grpc_health.v1 import health_pb2

from services.gateway.metrics import BACKEND_READY

SERVING = "serving"
_PATH = "/grpc.health.v1.Health/Check"
# Below the 3 s that the chart gives a probe, so that the answer names the backend that is away.
_TIMEOUT_SECONDS = 2.0
# During a rolling update one or two replicas are on their way out.
_REPLICAS_ASKED = 3


class BackendHealth:
    """Calls the health service of each backend."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel]) -> None:
        self._channels = dict(channels)

    async def check(self) -> dict[str, str]:
        """Backend to "serving", "not serving" or "unreachable"."""
        states = await asyncio.gather(*(_state(channel) for channel in self._channels.values()))
        for backend, state in zip(self._channels, states, strict=True):
            BACKEND_READY.labels(backend).set(state == SERVING)
        return dict(zip(self._channels, states, strict=True))


def is_ready(health: Mapping[str, str]) -> bool:
    return all(state == SERVING for state in health.values())


async def _state(channel: grpc.aio.Channel) -> str:
    """Asks the next replica each time: one that stops does not serve, and the others do."""
    state = "unreachable"
    for _ in range(_REPLICAS_ASKED):
        state = await _state_of_one(channel)
        if state != "not serving":
            break
    return state


async def _state_of_one(channel: grpc.aio.Channel) -> str:
    check: grpc.aio.UnaryUnaryMultiCallable[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]
    check = channel.unary_unary(
        _PATH,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    try:
        response = await check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_SECONDS)
    except grpc.aio.AioRpcError:
        return "unreachable"
    return SERVING if response.status == health_pb2.HealthCheckResponse.SERVING else "not serving"
