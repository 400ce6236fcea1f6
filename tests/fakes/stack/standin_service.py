"""A service that only reports health: `python -m tests.fakes.stack.standin_service ROLE [--journal FILE]`.

FILE gets a JSON line when it starts and when it stops. With `--crash` it dies at start; with `--leave-child`
it starts a child of its own, as a worker its engine.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

ADDRESS_SETTINGS = {
    "gateway": "PROCTOR_GATEWAY_GRPC_ADDRESS",
    "scheduler": "PROCTOR_SCHEDULER_ADDRESS",
    "results": "PROCTOR_RESULTS_ADDRESS",
    "worker": "PROCTOR_WORKER_HEALTH_ADDRESS",
}


def standin_modules(journal: Path | None = None, **options: str) -> dict[str, str]:
    """What runs as each service; `options` are more arguments, by role."""
    written = f" --journal {journal}" if journal else ""
    return {
        role: f"tests.fakes.stack.standin_service {role}{written} {options.get(role, '')}"
        for role in ADDRESS_SETTINGS
    }


def start_own_child() -> int:
    waiting = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
    return subprocess.Popen([sys.executable, "-c", waiting]).pid


async def answer_ready(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def serve(role: str) -> None:
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(os.environ[ADDRESS_SETTINGS[role]])
    await server.start()
    if role == "gateway":
        host, port = os.environ["PROCTOR_GATEWAY_HTTP_ADDRESS"].split(":")
        await asyncio.start_server(answer_ready, host, int(port))
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await stopping.wait()
    await server.stop(None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("--leave-child", action="store_true")
    given = parser.parse_args()
    if given.crash:
        sys.exit(f"{given.role} cannot start: it was made to crash")

    def note(event: str, **facts: object) -> None:
        if given.journal:
            line = {"role": given.role, "event": event, "pid": os.getpid(), **facts}
            with given.journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    child = start_own_child() if given.leave_child else None
    note("started", environment=sorted(os.environ), child=child)
    asyncio.run(serve(given.role))
    note("stopped")


if __name__ == "__main__":
    main()
