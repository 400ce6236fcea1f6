"""Traces by OpenTelemetry: spans of this process, and the trace context that travels with calls and messages.

Off unless an endpoint is set; then nothing of the SDK is imported, and a span costs a function call. Only the
gateway begins traces: what no traced request has caused has no spans.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from threading import Thread
from typing import Any

TRACEPARENT = "traceparent"
# The SDK's default of 10 s would outlive a pod that stops.
_EXPORT_SECONDS = 3
_Attributes = Mapping[str, str | int | float | bool]


class SpanKind(Enum):
    """Kinds as OpenTelemetry names them."""

    INTERNAL = "INTERNAL"
    SERVER = "SERVER"
    CLIENT = "CLIENT"
    PRODUCER = "PRODUCER"
    CONSUMER = "CONSUMER"


@dataclass(frozen=True, slots=True)
class _Tracing:
    """The modules are imported once, where traces are on."""

    trace: Any
    tracer: Any
    propagator: Any
    context: Any
    begins_traces: bool
    shutdown: Callable[[], None]


_tracing: _Tracing | None = None


def start_traces(service: str, endpoint: str, share: float, *, begins_traces: bool) -> None:
    """Exports spans over OTLP to `endpoint`, such as `http://collector:4317`; none if it is empty.

    `share` is that of the requests whose traces this process begins.
    """
    global _tracing  # noqa: PLW0603  # one per process, as the logs
    if not endpoint:
        return
    from opentelemetry import context, trace  # noqa: PLC0415  # slow, and needed with a collector only
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # slow, and needed with a collector only
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # slow, and needed with a collector only
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # slow, and needed with a collector only
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # slow, and needed with a collector only
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased  # noqa: PLC0415  # slow, and needed with a collector only
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415  # slow, and needed with a collector only
        TraceContextTextMapPropagator,
    )

    resource = Resource.create({"service.name": f"proctor-{service}"})
    sampler = ParentBased(TraceIdRatioBased(share))
    provider = TracerProvider(resource=resource, sampler=sampler, shutdown_on_exit=False)
    is_plain = endpoint.startswith("http://")
    exporter = OTLPSpanExporter(endpoint=endpoint, insecure=is_plain, timeout=_EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracing = _Tracing(
        trace=trace,
        tracer=provider.get_tracer("proctor"),
        propagator=TraceContextTextMapPropagator(),
        context=context,
        begins_traces=begins_traces,
        shutdown=provider.shutdown,
    )


def stop_traces() -> None:
    """Exports what is left, unless the collector takes long: a pod has only so much time to end."""
    global _tracing  # noqa: PLW0603  # as above
    if _tracing is not None:
        ending = Thread(target=_tracing.shutdown, name="export the last spans", daemon=True)
        _tracing = None
        ending.start()
        ending.join(_EXPORT_SECONDS)


def is_tracing() -> bool:
    return _tracing is not None


def current_trace() -> str:
    """The context of the current span as W3C's traceparent; empty without one that is sampled."""
    if _tracing is None:
        return ""
    found = _tracing.trace.get_current_span().get_span_context()
    # Unsampled contexts are not propagated, so the next service does no work for them.
    if not found.is_valid or not found.trace_flags.sampled:
        return ""
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-01"


@contextmanager
def span(
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    *,
    parent: str | None = None,
    attributes: _Attributes | None = None,
    links: Sequence[str] = (),
) -> Iterator[Any]:
    """A span as the current one; gives it, or None where none is recorded.

    `parent` is a traceparent from elsewhere; None: the current span. Without a parent there is no span,
    unless this process begins traces.
    """
    tracing = _tracing
    if tracing is None:
        yield None
        return
    context = None if parent is None else tracing.propagator.extract({TRACEPARENT: parent})
    around = tracing.trace.get_current_span(context).get_span_context()
    begins = kind is SpanKind.SERVER and tracing.begins_traces
    if not around.is_valid and not begins:
        yield None
        return
    with tracing.tracer.start_as_current_span(
        name,
        context=context,
        kind=tracing.trace.SpanKind[kind.value],
        attributes=dict(attributes or {}),
        links=[_link(tracing, each) for each in links],
        # Its text may quote what a caller or a model wrote.
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        yield made if made.is_recording() else None


@contextmanager
def continued_trace(traceparent: str) -> Iterator[None]:
    """Makes a context from elsewhere the current one, for spans and messages of this task."""
    tracing = _tracing
    if tracing is None or not traceparent:
        yield
        return
    token = tracing.context.attach(tracing.propagator.extract({TRACEPARENT: traceparent}))
    try:
        yield
    finally:
        tracing.context.detach(token)


def _link(tracing: _Tracing, traceparent: str) -> Any:
    context = tracing.propagator.extract({TRACEPARENT: traceparent})
    return tracing.trace.Link(tracing.trace.get_current_span(context).get_span_context())
