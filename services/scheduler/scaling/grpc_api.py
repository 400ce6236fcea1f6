"""KEDA's external scaler: as many workers as the pool needs, whatever KEDA has counted."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc

from proctor.keda import externalscaler_pb2
from proctor.keda import externalscaler_pb2_grpc as externalscaler_grpc
from services.common.grpc.server import RpcContext
from services.scheduler.scaling.show_demand import ShowDemand

SERVICE_NAME = externalscaler_pb2.DESCRIPTOR.services_by_name["ExternalScaler"].full_name
# The metric is the number of workers, so its target per worker is 1.
_METRIC = "workers"
_TARGET = 1
# KEDA polls four times a minute or less; the stream saves most of that where a pool has no worker.
_POLL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class GrpcExternalScaler(externalscaler_grpc.ExternalScalerServicer):
    demand: ShowDemand

    def register(self, server: grpc.aio.Server) -> None:
        externalscaler_grpc.add_ExternalScalerServicer_to_server(self, server)

    async def IsActive(
        self, request: externalscaler_pb2.ScaledObjectRef, context: RpcContext
    ) -> externalscaler_pb2.IsActiveResponse:
        demand = await self.demand.show(_pool(request))
        return externalscaler_pb2.IsActiveResponse(result=demand.is_active)

    async def StreamIsActive(
        self, request: externalscaler_pb2.ScaledObjectRef, context: RpcContext
    ) -> AsyncIterator[externalscaler_pb2.IsActiveResponse]:
        """Only the change to active: KEDA ignores the other, and a repeated one delays its cool-down."""
        async for _ in self.demand.watch_activations(_pool(request), _pauses):
            yield externalscaler_pb2.IsActiveResponse(result=True)

    async def GetMetricSpec(
        self, request: externalscaler_pb2.ScaledObjectRef, context: RpcContext
    ) -> externalscaler_pb2.GetMetricSpecResponse:
        spec = externalscaler_pb2.MetricSpec(metricName=_METRIC, targetSize=_TARGET, targetSizeFloat=_TARGET)
        return externalscaler_pb2.GetMetricSpecResponse(metricSpecs=[spec])

    async def GetMetrics(
        self, request: externalscaler_pb2.GetMetricsRequest, context: RpcContext
    ) -> externalscaler_pb2.GetMetricsResponse:
        demand = await self.demand.show(_pool(request.scaledObjectRef))
        # KEDA has taken its own prefix (s0-) off again.
        name = request.metricName or _METRIC
        # Both fields: KEDA reads the float where it is above 0, and the whole number otherwise.
        value = externalscaler_pb2.MetricValue(
            metricName=name, metricValue=demand.workers, metricValueFloat=demand.workers
        )
        return externalscaler_pb2.GetMetricsResponse(metricValues=[value])


def _pool(request: externalscaler_pb2.ScaledObjectRef) -> str:
    return request.scalerMetadata.get("pool", "")


async def _pauses() -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(_POLL_SECONDS)
