"""Starts the gateway."""

import sys

from services.common.processes.lean_start import start_lean

if __name__ == "__main__":
    start_lean(has_nats=False)

from services.common.process import start_process
from services.gateway.settings import GatewaySettings
from services.gateway.wiring import running_gateway


def main() -> int:
    return start_process("gateway", GatewaySettings, running_gateway, begins_traces=True)


if __name__ == "__main__":
    sys.exit(main())
