"""The health of scheduler and results, as their replicas report it, and of the streams of NATS."""

import asyncio
from collections.abc import Mapping

import grpc
from grpc_health.v1 import health_pb2

from proctor.values.messaging import STREAMS_HEALTH
from services.gateway.metrics import BACKEND_READY

SERVING = "serving"
_PATH = "/grpc.health.v1.Health/Check"
# Below the 3 s that the chart gives a probe, so that the answer names the backend that is away.
_TIMEOUT_SECONDS = 2.0
# During a rolling update one or two replicas are on their way out.
_REPLICAS_ASKED = 3
_WORDS = {
    health_pb2.HealthCheckResponse.SERVING: SERVING,
    health_pb2.HealthCheckResponse.NOT_SERVING: "not serving",
}


class BackendHealth:
    """Calls the health service of each backend."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel], *, keeps_streams: str) -> None:
        """`keeps_streams` names the backend that reports the health of streams."""
        self._channels = dict(channels)
        self._keeps_streams = keeps_streams

    async def check(self) -> dict[str, str]:
        """Backend to "serving", "not serving" or "unreachable"."""
        states = await asyncio.gather(*(_state(channel) for channel in self._channels.values()))
        for backend, state in zip(self._channels, states, strict=True):
            BACKEND_READY.labels(backend).set(state == SERVING)
        return dict(zip(self._channels, states, strict=True))

    async def check_all(self) -> dict[str, str]:
        """As `check`, with `streams`: "not serving" while NATS lacks one or takes no messages for one."""
        keeper = self._channels[self._keeps_streams]
        backends, streams = await asyncio.gather(self.check(), _state(keeper, STREAMS_HEALTH))
        return {**backends, "streams": streams}


def is_ready(health: Mapping[str, str]) -> bool:
    return all(state == SERVING for state in health.values())


async def _state(channel: grpc.aio.Channel, service: str = "") -> str:
    """Asks the next replica each time: one that stops does not serve, and the others do."""
    state = "unreachable"
    for _ in range(_REPLICAS_ASKED):
        state = await _state_of_one(channel, service)
        if state != "not serving":
            break
    return state


async def _state_of_one(channel: grpc.aio.Channel, service: str) -> str:
    check: grpc.aio.UnaryUnaryMultiCallable[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]
    check = channel.unary_unary(
        _PATH,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    try:
        response = await check(health_pb2.HealthCheckRequest(service=service), timeout=_TIMEOUT_SECONDS)
    except grpc.aio.AioRpcError as error:
        # A replica of a release that does not report it.
        return SERVING if error.code() is grpc.StatusCode.NOT_FOUND else "unreachable"
    return _WORDS.get(response.status, "unreachable")
