"""A collector of OpenTelemetry: takes spans over OTLP and keeps them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """Ids as hexadecimal; `parent` is empty for the first of a trace."""

    service: str
    name: str
    trace: str
    span: str
    parent: str
    attributes: frozenset[str] = frozenset()


@dataclass
class TraceCollector(trace_service_pb2_grpc.TraceServiceServicer):
    spans: list[CollectedSpan] = field(default_factory=list)
    endpoint: str = ""

    async def Export(  # noqa: N802  # the published method
        self,
        request: trace_service_pb2.ExportTraceServiceRequest,
        _: object,
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for group in request.resource_spans:
            named = {each.key: each.value.string_value for each in group.resource.attributes}
            for scope in group.scope_spans:
                for each in scope.spans:
                    self.spans.append(
                        CollectedSpan(
                            named["service.name"],
                            each.name,
                            each.trace_id.hex(),
                            each.span_id.hex(),
                            each.parent_span_id.hex(),
                            frozenset(attribute.key for attribute in each.attributes),
                        )
                    )
        return trace_service_pb2.ExportTraceServiceResponse()

    def edges_of(self, name: str) -> frozenset[tuple[str, str]]:
        """Caller and callee, as "service name", of all traces that begin with a span of this name."""
        traces = {each.trace for each in self.spans if each.name == name and not each.parent}
        of_traces = [each for each in self.spans if each.trace in traces]
        by_id = {(each.trace, each.span): f"{each.service} {each.name}" for each in of_traces}
        return frozenset(
            (by_id.get((each.trace, each.parent), "?"), f"{each.service} {each.name}")
            for each in of_traces
            if each.parent
        )


@asynccontextmanager
async def trace_collector() -> AsyncIterator[TraceCollector]:
    server = grpc.aio.server()
    collector = TraceCollector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(  # type: ignore[no-untyped-call]  # generated
        collector, server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    collector.endpoint = f"http://127.0.0.1:{port}"
    await server.start()
    try:
        yield collector
    finally:
        await server.stop(0)
