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


def test_field_and_traceback_of_megabytes_are_cut_and_their_length_is_said() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    refused, failed = (json.loads(line) for line in run.stdout.splitlines())
    assert len(run.stdout) < 40_000
    assert refused["message"] == "a" * 1024 + "… (14000000 characters)"
    assert refused["count"] == 7
    assert failed["exception"].startswith("Traceback")
