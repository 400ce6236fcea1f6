"""Traces are off unless an endpoint is set, and then cost nothing."""

import subprocess
import sys

from services.common.traces import SpanKind, continued_trace, current_trace, is_tracing, span

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LOADED = "import sys, services.{0}.wiring; print('opentelemetry.sdk' in sys.modules)"


def test_without_an_endpoint_there_are_no_spans_and_no_headers() -> None:
    assert not is_tracing()
    with span("run", SpanKind.SERVER, parent=PARENT) as made, continued_trace(PARENT):
        assert made is None
        assert current_trace() == ""


def test_without_an_endpoint_no_service_loads_the_sdk() -> None:
    for service in ("gateway", "scheduler", "results", "worker"):
        command = [sys.executable, "-c", LOADED.format(service)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == "False", service
