"""Nothing leaves a sandbox: each attempt is made in every engine, and some on this machine itself, as a
control. The engines and a neighbour in each of them are there for all attempts.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command
from services.common.sandboxes.tar_files import pack
from services.worker.sandboxes.modal.engine import ModalEngine
from tests.integration.worker.sandboxes.attempts import files, kernel, network, processes
from tests.integration.worker.sandboxes.attempts.attempt import Attempt
from tests.integration.worker.sandboxes.conftest import ESCAPED_ENGINES, SMALL, opened_engine

_SHARED_MEMORY = """
import ctypes
open("/dev/shm/of-another", "w").write("x")
ctypes.CDLL(None).shmget(0x1234, 4096, 0o1666)
"""
SECRET = "the worker's key 4711"
ATTEMPTS = (*files.ATTEMPTS, *kernel.ATTEMPTS, *network.ATTEMPTS, *processes.ATTEMPTS)
CONTROLS = tuple(attempt for attempt in ATTEMPTS if attempt.outside)
# It lives until the last attempt.
_NEIGHBOUR = replace(SMALL, lifetime_seconds=3600.0)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An engine, and a sandbox in it that no other may reach."""

    engine: SandboxEngine
    neighbour: Sandbox


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def neighbourhoods(request: pytest.FixtureRequest) -> AsyncIterator[Mapping[str, Neighbourhood]]:
    async with AsyncExitStack() as opened:
        made: dict[str, Neighbourhood] = {}
        for kind in ESCAPED_ENGINES:
            engine = await opened.enter_async_context(opened_engine(kind, request))
            neighbour = await engine.open(_NEIGHBOUR)
            opened.push_async_callback(neighbour.close)
            await neighbour.put("/work", pack({"of-another": b"hidden tests"}))
            assert (await neighbour.run(Command(("python3", "-c", _SHARED_MEMORY)))).is_success
            made[kind] = Neighbourhood(engine, neighbour)
        yield made
        # No attempt has reached it.
        for each in made.values():
            assert (await each.neighbour.run(Command(("cat", "of-another")))).text == "hidden tests"


@pytest_asyncio.fixture(loop_scope="module")
async def engine(
    request: pytest.FixtureRequest, neighbourhoods: Mapping[str, Neighbourhood]
) -> SandboxEngine:
    # For `attempt_table`.
    request.node.user_properties.append(("engine", request.param))
    return neighbourhoods[request.param].engine


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(engine: SandboxEngine) -> AsyncIterator[Sandbox]:
    opened = await engine.open(SMALL)
    yield opened
    await opened.close()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """Things outside that every user of this machine can reach."""
    monkeypatch.setenv("PROCTOR_SECRET", SECRET)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    secret_file = tmp_path / "secret"
    secret_file.write_text(SECRET)
    abstract = f"proctor-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as filed,
    ):
        named.bind(f"\0{abstract}")
        filed.bind(str(tmp_path / "socket"))
        for one in (named, filed):
            one.listen()
        yield {
            "secret_file": str(secret_file),
            "secret_value": SECRET,
            "host_port": listening.getsockname()[1],
            "abstract_name": abstract,
            "socket_file": str(tmp_path / "socket"),
            "host_processes": [os.getpid(), os.getppid()],
            "host_command": Path("/proc/self/cmdline").read_text(),
        }


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
async def test_nothing_is_reached_from_inside(
    sandbox: Sandbox,
    engine: SandboxEngine,
    attempt: Attempt,
    planted: dict[str, object],
    record_property: Callable[[str, object], None],
) -> None:
    if attempt.by_filter and isinstance(engine, ModalEngine):
        record_property("outcome", "not applicable")
        return
    program = Command(("python3", "-I", "-c", attempt.program(planted)), stdin=b"given", timeout_seconds=30)
    result, _ = await asyncio.gather(sandbox.run(program), sandbox.run(Command(("sleep", "0.1"))))
    assert "ESCAPED" not in result.text
    # It was made, to its end.
    assert result.exit_code == 0, result.text
    assert (await sandbox.run(Command(("echo", "alive")))).text == "alive\n"


@pytest.mark.parametrize("attempt", CONTROLS, ids=lambda attempt: attempt.name)
def test_the_same_attempt_succeeds_on_the_machine_itself(
    attempt: Attempt, planted: dict[str, object]
) -> None:
    program = [sys.executable, "-I", "-c", attempt.program(planted)]
    said = subprocess.run(program, capture_output=True, text=True, input="given", check=False, timeout=30)
    assert "ESCAPED" in said.stdout, said.stderr


def test_there_are_forty_attempts() -> None:
    assert len(ATTEMPTS) >= 40
