"""Lines of the log: whatever a client sends, a line stays a line."""

import json
import subprocess
import sys

SCRIPT = """
from services.common.structured_logs import configure_logs, get_logger
configure_logs("gateway", "INFO")
get_logger().info("rpc refused", message="a" * 14_000_000, count=7)
try:
    raise ValueError("b" * 14_000_000)
except ValueError as error:
    get_logger().error("rpc failed", exc_info=error)
"""

TRACED = """
from services.common import traces
from services.common.structured_logs import configure_logs, get_logger
traces.start_traces("gateway", "http://127.0.0.1:9", 1.0, begins_traces=True)
configure_logs("gateway", "INFO")
with traces.span("call", traces.SpanKind.SERVER, parent=""):
    print(traces.current_trace())
    get_logger().info("rpc")
get_logger().info("idle")
traces.stop_traces()
"""


def test_line_of_traced_work_has_the_ids_of_its_trace_and_span_and_no_other_has() -> None:
    run = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, check=True, timeout=60)
    # The exporter may add a line about the collector that is away.
    trace, *lines = run.stdout.decode().splitlines()[:3]
    traced, idle = (json.loads(line) for line in lines)
    assert f"00-{traced['trace_id']}-{traced['span_id']}-01" == trace
    assert not {"trace_id", "span_id"} & idle.keys()


def test_field_and_traceback_of_megabytes_are_cut_and_their_length_is_said() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    refused, failed = (json.loads(line) for line in run.stdout.splitlines())
    assert len(run.stdout) < 40_000
    assert refused["message"] == "a" * 1024 + "… (14000000 characters)"
    assert refused["count"] == 7
    assert failed["exception"].startswith("Traceback")
