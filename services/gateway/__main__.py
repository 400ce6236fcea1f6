"""Starts the gateway."""

import sys

import uvloop

from services.common.lifecycle import run_service
from services.common.structured_logs import configure_logs
from services.gateway.settings import GatewaySettings
from services.gateway.wiring import running_gateway


def main() -> int:
    settings = GatewaySettings()
    configure_logs("gateway", settings.log_level)
    return uvloop.run(run_service("gateway", lambda: running_gateway(settings)))


if __name__ == "__main__":
    sys.exit(main())
