"""Resources of a sandbox are bounded, and it stays usable afterwards."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine
from services.common.sandboxes.errors import SandboxLost
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Command, Ended
from tests.fakes.eventually import eventually
from tests.harness.processes import bound, killed_at_the_end
from tests.integration.worker.sandboxes.conftest import MIB, SMALL

_SLEEPERS = """
import os, time
made = 0
try:
    for _ in range(500):
        made += 1
        if not os.fork():
            time.sleep(9)
except OSError:
    print(made)
"""
_TWELVE = """
import os, time
for _ in range(12):
    if not os.fork():
        x = b"1" * (60 << 20)
        time.sleep(20)
        break
else:
    os.wait()
"""
_BURN = """
import os, time
import resource as r
for _ in range(3):
    os.fork()
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
while True:
    try:
        os.wait()
    except OSError:
        break
print(r.getrusage(r.RUSAGE_CHILDREN).ru_utime + r.getrusage(r.RUSAGE_SELF).ru_utime, flush=True)
"""


_KILLERS = {
    "kills": """
import os
while True:
    try:
        os.kill(-1, 9)
    except OSError:
        pass
""",
    "stops": """
import os
while True:
    try:
        os.kill(-1, 19)
    except OSError:
        pass
""",
    "kills and forks": """
import os
while True:
    try:
        os.fork()
        os.kill(-1, 9)
    except OSError:
        pass
""",
}


def python(code: str, seconds: float = 30.0) -> Command:
    return Command(("python3", "-I", "-c", code), timeout_seconds=seconds)


async def _is_usable(sandbox: Sandbox) -> bool:
    await sandbox.stop_processes()
    return (await sandbox.run(Command(("echo", "usable")))).text == "usable\n"


@pytest.mark.parametrize("killer", _KILLERS)
async def test_a_program_that_kills_whatever_it_sees_is_killed(sandbox: Sandbox, killer: str) -> None:
    for _ in range(4):
        result = await asyncio.wait_for(sandbox.run(python(_KILLERS[killer], seconds=0.3)), 60)
        # In a container it also kills the shell that it was started by.
        assert not result.is_success
    assert await _is_usable(sandbox)


@pytest.mark.parametrize(
    "bomb",
    ["import os\nwhile True:\n try: os.fork()\n except OSError: pass", ":(){ :|:& };:"],
    ids=["python", "shell"],
)
async def test_a_fork_bomb_stays_small_and_is_ended(sandbox: Sandbox, bomb: str) -> None:
    command = (
        python(bomb, 1.0) if bomb.startswith("import") else Command(("bash", "-c", bomb), timeout_seconds=1.0)
    )
    started = time.monotonic()
    await sandbox.run(command)
    assert time.monotonic() - started < 15
    assert subprocess.run(["true"], check=False, timeout=10).returncode == 0  # noqa: ASYNC221  # the host forks
    # On a busy machine the last of them end a moment later.
    await eventually(lambda: _is_usable(sandbox), "the processes of the bomb are gone")


async def test_processes_that_wait_are_counted(sandbox: Sandbox) -> None:
    result = await sandbox.run(python(_SLEEPERS, 5.0))
    assert int(result.text) <= SMALL.limits.processes
    assert await _is_usable(sandbox)


async def test_a_memory_bomb_is_ended(sandbox: Sandbox) -> None:
    result = await sandbox.run(python("x = b'1' * (1 << 30); print('has it')"))
    assert "has it" not in result.text
    assert result.ended is Ended.OUT_OF_MEMORY or "MemoryError" in result.text
    assert await _is_usable(sandbox)


@pytest.mark.parametrize("engine", ["process without privileges"], indirect=True)
async def test_a_command_after_a_memory_bomb_is_not_killed_for_it(sandbox: Sandbox) -> None:
    """Here the watch of the launcher kills; elsewhere the kernel does."""
    for _ in range(15):
        bomb = await sandbox.run(python(_TWELVE, 20.0))
        assert bomb.ended is Ended.OUT_OF_MEMORY
        after = await sandbox.run(Command(("echo", "usable")))
        assert (after.text, after.ended) == ("usable\n", Ended.EXITED)


@pytest.mark.parametrize("engine", ["process without privileges"], indirect=True)
async def test_a_command_that_is_cancelled_while_it_waits_for_a_kill_never_begins(
    sandbox: Sandbox, engine: BubblewrapEngine
) -> None:
    await sandbox.run(Command(("true",)))
    before = _children(engine.launcher.process)
    for _ in range(5):
        bomb = asyncio.create_task(sandbox.run(python(_TWELVE, 20.0)))
        while _children(engine.launcher.process) == before and not bomb.done():
            # Not for long: its child that kills lives for milliseconds.
            await asyncio.wait((bomb,), timeout=0)
        late = asyncio.create_task(sandbox.run(Command(("sleep", "977"))))
        await asyncio.wait((late,), timeout=0.001)
        late.cancel()
        await asyncio.wait((late, bomb))
        left = await sandbox.run(Command(("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")))
        assert "sleep 977" not in left.text


def _children(process: int | None) -> str:
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")


async def test_a_memory_bomb_of_many_processes_is_ended(sandbox: Sandbox) -> None:
    before = _free_bytes()
    running = asyncio.create_task(sandbox.run(python(_TWELVE, 20.0)))
    least = before
    while not running.done():
        least = min(least, _free_bytes())
        await asyncio.wait((running,), timeout=0.02)
    await running
    # Twelve of them would take 720 MiB. Other programs of this machine are in the figure too.
    assert before - least < 600 * MIB
    await _ended_or_usable(sandbox)


def _free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


async def _ended_or_usable(sandbox: Sandbox) -> None:
    """Where its files alone are over a limit, its commands end for that, or the whole sandbox; never more
    than that.
    """
    with contextlib.suppress(SandboxLost):
        await sandbox.stop_processes()
        result = await sandbox.run(Command(("echo", "usable")))
        assert result.text == "usable\n" or result.ended in (Ended.OUT_OF_MEMORY, Ended.OUT_OF_DISK)


async def test_writable_folders_are_full_soon(sandbox: Sandbox) -> None:
    fill = """
import os
total = 0
for folder in ("/work", "/tmp", "/home", "/dev/shm", "/run", "/var/tmp", "/"):
    try:
        with open(f"{folder}/fill", "wb", 0) as file:
            for _ in range(1000):
                total += file.write(b"x" * (1 << 20))
    except OSError:
        pass
print(total >> 20)
"""
    try:
        result = await sandbox.run(python(fill))
    except SandboxLost:
        return
    assert result.ended is not Ended.EXITED or int(result.text) <= 32 + 64 + 16 + 16
    await _ended_or_usable(sandbox)


async def test_a_million_empty_files_are_not_made(sandbox: Sandbox) -> None:
    make = "import os\nfor n in range(1_000_000): os.close(os.open(f'/work/{n}', os.O_CREAT))\nprint('made')"
    try:
        result = await sandbox.run(python(make, 60.0))
    except SandboxLost:
        return
    assert "made" not in result.text
    assert result.ended is not Ended.TIMED_OUT
    await _ended_or_usable(sandbox)


async def test_output_without_end_takes_no_memory(sandbox: Sandbox) -> None:
    before = _resident_bytes()
    result = await sandbox.run(
        Command(("sh", "-c", "head -c 300000000 /dev/zero; echo end"), output_bytes=1000)
    )
    assert (len(result.head), len(result.tail), result.total_bytes) == (500, 500, 300_000_004)
    assert result.tail.endswith(b"end\n")
    assert _resident_bytes() - before < 50 * MIB


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_open_files_are_bounded(sandbox: Sandbox) -> None:
    opened = "import os\nn = 0\ntry:\n while True: os.open('/dev/null', 0); n += 1\nexcept OSError: print(n)"
    assert int((await sandbox.run(python(opened))).text) <= 1024


async def test_cpu_time_is_bounded_where_the_engine_says_so(
    sandbox: Sandbox, engine: SandboxEngine, record_property: Callable[[str, object], None]
) -> None:
    if any(name.startswith("CPU") for name in (await engine.check()).unlimited):
        record_property("outcome", "not limited")
        nice = await sandbox.run(Command(("sh", "-c", "nice")))
        assert int(nice.text) >= 10
        return
    result = await sandbox.run(python(_BURN))
    assert max(map(float, result.text.split())) < 2 * SMALL.limits.cpus * 1.6


async def test_killing_everything_leaves_the_sandbox_usable(sandbox: Sandbox) -> None:
    await sandbox.run(Command(("sh", "-c", "kill -9 -1; kill -9 1; kill -TERM 1; kill -STOP 1")))
    assert (await sandbox.run(Command(("echo", "usable")))).text == "usable\n"


def test_a_killed_worker_leaves_nothing_and_the_next_one_sweeps() -> None:
    """The process engine alone: sandboxes, their processes and their control groups."""
    program = Path(__file__).with_name("killed_worker.py")
    root = str(Path(__file__).resolve().parents[4])
    with killed_at_the_end(
        subprocess.Popen(
            bound(sys.executable, str(program)),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": root},
        )
    ) as worker:
        assert worker.stdout is not None
        processes = [int(one) for one in worker.stdout.readline().split()]
        assert len(processes) == 4
        assert all(Path(f"/proc/{one}").exists() for one in processes)
        worker.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{one}").exists() for one in processes):
        assert time.monotonic() < deadline
    swept = subprocess.run(
        [sys.executable, str(program), "sweep"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": root}, timeout=60,
    )  # fmt: skip
    left = [
        one for one in Path("/sys/fs/cgroup").rglob("proctor-sandbox-*") if f"-{processes[0]}-" in one.name
    ]
    assert left == [], swept.stdout
