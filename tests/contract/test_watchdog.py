"""A test that hangs where pytest-timeout does not look ends its process, and its stack is shown."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import eventually as polling
from tests.fakes.thorough_cases import first_cases

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os
from tests.harness.watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(os.dup(2), grace_seconds=1, teardown_seconds=2, exit_seconds=2))
"""
FAILED_TEST_WITH_A_TEARDOWN = """
import asyncio, pytest

@pytest.fixture
async def stack():
    yield
    await asyncio.Event().wait()

async def test_something(stack):
    assert False
"""
TIMEOUT_LOST_IN_A_CALLBACK = """
import asyncio, time

def be_busy():
    time.sleep(2)

async def test_something():
    asyncio.get_running_loop().call_soon(be_busy)
    await asyncio.Event().wait()
"""
THREAD_AT_THE_EXIT = """
import threading

def test_something():
    threading.Thread(target=threading.Event().wait).start()
"""


@first_cases(
    1,
    ("hanging", "where"),
    [
        (FAILED_TEST_WITH_A_TEARDOWN, "pytest_runtest_teardown"),
        (TIMEOUT_LOST_IN_A_CALLBACK, "pytest_runtest_call"),
        (THREAD_AT_THE_EXIT, "_shutdown"),
    ],
    ids=["teardown of a failed test", "lost timeout", "exit"],
)
def test_hanging_process_ends_with_its_stacks(tmp_path: Path, hanging: str, where: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_hanging.py").write_text(hanging)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\ntimeout = 1\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout
    assert "Timeout (0:00:0" in ended.stderr
    assert where in ended.stderr


async def test_look_that_hangs_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "MAX_LOOK_SECONDS", 0.1)
    was_cancelled = asyncio.Event()

    async def hang() -> bool:
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.set()
            raise

    with pytest.raises(AssertionError, match="a look did not end within 0 s: an answer"):
        await polling.eventually(hang, "an answer", limit_seconds=0.1)
    assert was_cancelled.is_set()
