"""Health of the backends, for readiness."""

import asyncio
from collections.abc import Mapping

import grpc
from grpc_health.v1 import health_pb2

_PATH = "/grpc.health.v1.Health/Check"
_TIMEOUT_SECONDS = 2.0


class BackendHealth:
    """Calls the health service of each backend."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel]) -> None:
        self._channels = dict(channels)

    async def check(self) -> dict[str, str]:
        """Backend to "serving", "not serving" or "unreachable"."""
        states = await asyncio.gather(*(_state(channel) for channel in self._channels.values()))
        return dict(zip(self._channels, states, strict=True))


def is_ready(health: Mapping[str, str]) -> bool:
    return all(state == "serving" for state in health.values())


async def _state(channel: grpc.aio.Channel) -> str:
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
    return "serving" if response.status == health_pb2.HealthCheckResponse.SERVING else "not serving"
