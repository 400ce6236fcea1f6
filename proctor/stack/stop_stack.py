"""Stops the stack of a state folder from another process: what `proctor down` does."""

import contextlib
import os
import signal
import time
from pathlib import Path

from proctor.stack.stack_state import is_locked, read_stack_state, remove_stack_state

LOOK_EVERY_SECONDS = 0.05
STOP_LIMIT_SECONDS = 120.0
KILL_LIMIT_SECONDS = 10.0


def stop_stack(state_dir: Path, limit_seconds: float = STOP_LIMIT_SECONDS) -> bool:
    """False when none ran. Blocks until it is gone; past the limit it is killed, and its children with it."""
    state = read_stack_state(state_dir)
    if state is None:
        remove_stack_state(state_dir)
        return False
    _signal(state.supervisor_pid, signal.SIGTERM)
    if not _wait_until_gone(state_dir, limit_seconds):
        _signal(state.supervisor_pid, signal.SIGKILL)
        _wait_until_gone(state_dir, KILL_LIMIT_SECONDS)
        remove_stack_state(state_dir)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_until_gone(state_dir: Path, limit_seconds: float) -> bool:
    deadline = time.monotonic() + limit_seconds
    while is_locked(state_dir):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_SECONDS)  # noqa: TID251 - this is a poll with a deadline
    return True
