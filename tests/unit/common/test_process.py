"""A server that cannot listen says why, whichever of the two kinds it is.
A process that has freed large blocks is as small as before, however often it had them.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from services.common.errors import AddressTaken, CannotListen
from services.common.grpc.server import serve_grpc
from services.common.process import bound_socket, is_loopback

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


async def listen(address: str) -> None:
    bound_socket(address).close()


async def serve(address: str) -> None:
    await (await serve_grpc(address, [], [])).stop(0)


Listen = Callable[[str], Awaitable[None]]
both = pytest.mark.parametrize("start", [listen, serve])


@both
async def test_only_a_port_in_use_is_taken(start: Listen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(AddressTaken):
        await start(f"127.0.0.1:{taken.getsockname()[1]}")


@both
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("192.0.2.1:4711", "cannot assign requested address"),
        ("127.0.0.1:http-alt", "it is not host:port"),
        ("127.0.0.1:70000", "it is not host:port"),
        ("no.such.host.invalid:4711", "name"),
        ("::1:4711", r"an IPv6 address must stand in brackets, such as \[::1\]:8080"),
    ],
)
async def test_other_trouble_is_reported_as_by_the_system(start: Listen, address: str, problem: str) -> None:
    with pytest.raises(CannotListen, match=problem) as caught:
        await start(address)
    assert caught.value.message.startswith(f"Cannot listen on {address}: ")


# In a process of its own, because the logs of a process are configured once.
KEYED = """
from collections.abc import Mapping
from pydantic_settings import BaseSettings
from services.common.process import start_process
from services.common.shared_settings import settings_of

class KeyedSettings(BaseSettings):
    model_config = settings_of("keyed")
    log_level: str = "INFO"
    keys: Mapping[str, str] = {}

raise SystemExit(start_process("keyed", KeyedSettings, lambda _: None))
"""


def test_a_setting_that_cannot_be_read_is_refused_in_a_sentence() -> None:
    environment = {**os.environ, "PROCTOR_KEYED_KEYS": "not JSON, and a secret"}
    command = (sys.executable, "-c", KEYED)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "settings refused" in ended.stdout
    assert "keys" in ended.stdout
    assert "secret" not in ended.stdout


# As `__main__` of a service begins.
COLLECTING = """
import gc
gc.disable()
from contextlib import asynccontextmanager
from services.common.process import start_process
from services.gateway.settings import GatewaySettings

@asynccontextmanager
async def running(settings):
    print("collected:", gc.isenabled(), gc.get_freeze_count() > 0, flush=True)
    raise SystemExit(0)
    yield

start_process("gateway", GatewaySettings, running)
"""


def test_garbage_is_collected_once_all_is_imported() -> None:
    ended = subprocess.run((sys.executable, "-c", COLLECTING), capture_output=True, text=True, check=False)
    assert "collected: True True" in ended.stdout, ended.stderr


# It waits in a place that no cancellation reaches, as for a server that is gone.
STUCK = """
import asyncio, os, signal, time
from contextlib import asynccontextmanager
from services.common.process import start_process
from services.scheduler.settings import SchedulerSettings

class Service:
    async def set_ready(self, is_ready):
        if is_ready:
            os.kill(os.getpid(), signal.SIGTERM)
    async def wait_failed(self): await asyncio.Event().wait()
    async def stop_taking_work(self): pass
    async def drain(self): time.sleep(60)

@asynccontextmanager
async def running(settings):
    yield Service()

raise SystemExit(start_process("scheduler", SchedulerSettings, running))
"""


def test_a_process_that_cannot_stop_ends_after_its_drain_time() -> None:
    environment = {**os.environ, "PROCTOR_SCHEDULER_DRAIN_SECONDS": "1"}
    command = (sys.executable, "-c", STUCK)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert ended.returncode == 0, ended.stderr
    assert "gave up what did not stop in time" in ended.stdout


HIDDEN = """
import ctypes
from services.common.process import hide_from_own_user
hide_from_own_user()
raise SystemExit(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


def test_environment_of_a_service_is_hidden_from_programs_of_its_user() -> None:
    """The kernel gives the files of a process that is not dumpable (3: PR_GET_DUMPABLE) to root."""
    hidden = subprocess.run((sys.executable, "-c", HIDDEN), check=False, timeout=50)
    assert hidden.returncode == 0


async def test_a_server_for_other_services_does_not_list_its_own(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'socket'}"
    server = await serve_grpc(address, [], [])
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            ask: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(REFLECTION)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(iter([b""]), timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    finally:
        await server.stop(0)


def test_socket_of_all_interfaces_and_of_version_6() -> None:
    with bound_socket(":0") as everywhere:
        assert everywhere.family is socket.AF_INET
    with bound_socket("[::1]:0") as loopback:
        assert loopback.family is socket.AF_INET6


# Without the call it keeps 24 MiB.
PROGRAM = """
from pathlib import Path
from services.common.process import return_freed_memory

def held_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) // 1024

return_freed_memory()
before = held_mib()
for _ in range(3):
    block = b"x" * (24 << 20)
    behind = bytes(100_000)
    del block
print(held_mib() - before)
"""


def test_large_blocks_that_were_freed_are_not_kept() -> None:
    reported = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert int(reported.stdout) <= 2


def test_nothing_before_the_colon_means_this_machine_only() -> None:
    with bound_socket(":0") as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("address", [":80", "127.0.0.1:80", "localhost:80", "[::1]:80"])
def test_address_of_this_machine_is_a_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "gateway:80"])
def test_address_that_others_reach_is_none(address: str) -> None:
    assert not is_loopback(address)
