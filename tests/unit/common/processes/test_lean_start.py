"""A service starts without packages that its libraries import for what it does not do."""

import subprocess
import sys

import pytest

START = """
import sys
from services.common.processes.lean_start import start_lean
start_lean(has_nats={has_nats})
import services.{service}.wiring
print(*sorted({{"rich.console", "aiohttp.client"}} & set(sys.modules)))
# What a service hid from a library it can use itself.
import aiohttp.web
"""


@pytest.mark.parametrize(
    ("service", "has_nats", "loaded"),
    [
        pytest.param("gateway", False, "", id="gateway"),
        pytest.param("results", True, "", id="results"),
        # It asks model servers by aiohttp.
        pytest.param("worker", True, "aiohttp.client", id="worker"),
    ],
)
def test_a_service_imports_what_it_uses(*, service: str, has_nats: bool, loaded: str) -> None:
    lines = START.format(service=service, has_nats=has_nats)
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == loaded
