"""Starts the gateway."""

import gc
import sys

if __name__ == "__main__":
    # Nothing that an import makes is garbage: collections would be an eighth of the start.
    gc.disable()

from services.common.process import start_process
from services.gateway.settings import GatewaySettings
from services.gateway.wiring import running_gateway


def main() -> int:
    return start_process("gateway", GatewaySettings, running_gateway, begins_traces=True)


if __name__ == "__main__":
    sys.exit(main())
