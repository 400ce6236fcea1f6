"""Traces are off unless an endpoint is set, and then cost nothing."""

import subprocess
import sys

from services.common.traces import SpanKind, continued_trace, current_trace, is_tracing, span

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def printed(program: str) -> list[str]:
    """The words that it prints, in a process of its own: traces are of a process."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


def test_without_an_endpoint_there_are_no_spans_and_no_headers() -> None:
    assert not is_tracing()
    with span("run", SpanKind.SERVER, parent=PARENT) as made, continued_trace(PARENT):
        assert made is None
        assert current_trace() == ""


def test_without_an_endpoint_no_service_loads_the_sdk() -> None:
    imports = ", ".join(
        f"services.{service}.wiring" for service in ("gateway", "scheduler", "results", "worker")
    )
    assert printed(f"import sys, {imports}; print('opentelemetry.sdk' in sys.modules)") == ["False"]


AWAY = """
import time
from services.common import traces
traces.start_traces("gateway", "http://127.0.0.1:9", 1.0, begins_traces=True)
for number in range(2000):
    with traces.span("call", traces.SpanKind.SERVER, parent="") as made:
        assert made is not None
started = time.monotonic()
traces.stop_traces()
print(time.monotonic() - started < 10)
"""


def test_collector_that_is_away_holds_up_no_process() -> None:
    assert printed(AWAY) == ["True"]


FOLLOWED = """
from services.common import traces
from services.common.traces import SpanKind, current_trace, span
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
traces.start_traces("worker", "http://127.0.0.1:9", 1.0, begins_traces=False)
with span("call", SpanKind.SERVER, parent="") as made:
    print(made is None, current_trace() == "")
with span("shard", SpanKind.CONSUMER, parent=PARENT[:-2] + "00") as made:
    print(made is None, current_trace() == "")
with span("shard", SpanKind.CONSUMER, parent=PARENT) as made:
    print(made is not None, current_trace()[:35] == PARENT[:35])
"""


def test_only_what_a_sampled_request_has_caused_has_spans() -> None:
    assert printed(FOLLOWED) == ["True"] * 6
