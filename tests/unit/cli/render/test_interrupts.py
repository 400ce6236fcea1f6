"""Ctrl-C, however often, ends a command without a traceback."""

import signal
import subprocess
import sys
from contextlib import suppress

import pytest

PROGRAM = """
import asyncio, time
from proctor.cli.render.terminal import Terminal, execute

async def work():
    print("begun", flush=True)
    # A thread that goes on when the command is over.
    await asyncio.to_thread(time.sleep, 20)

execute(Terminal(is_json=False), work)
"""


@pytest.mark.timeout(60)
def test_ctrl_c_again_and_again_shows_no_traceback() -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", f"import signal\nsignal.signal(2, signal.default_int_handler)\n{PROGRAM}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    assert command.stdout.readline() == "begun\n"
    for _ in range(75):
        command.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            command.wait(timeout=0.2)
            break
    _, errors = command.communicate(timeout=30)
    assert command.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" not in errors
