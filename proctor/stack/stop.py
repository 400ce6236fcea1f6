"""Stops the stack of a state folder from another process: what `proctor down` does."""

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil

from proctor.stack.state import LOCK_FILE, is_locked, read_stack_state, remove_stack_state

# `proctor down` returns at most this long after the stack is gone.
POLL_SECONDS = 0.05
# For a stack that has not written yet how long its children may take.
STOP_TIMEOUT_SECONDS = 120.0
# Time that the supervisor needs after its children have stopped.
STOP_MARGIN_SECONDS = 20.0
# After SIGKILL only the kernel is waited for.
KILL_TIMEOUT_SECONDS = 10.0
EXIT_TIMEOUT_SECONDS = 5.0


def stop_stack(state_dir: Path) -> bool:
    """False when none ran. Blocks until it is gone; past the timeout it and its children are killed."""
    if not is_locked(state_dir):
        remove_stack_state(state_dir)
        return False
    if not _signal_until_gone(state_dir, signal.SIGTERM, stop_timeout_seconds(state_dir)):
        _signal_until_gone(state_dir, signal.SIGKILL, KILL_TIMEOUT_SECONDS)
        remove_stack_state(state_dir)
    return True


def stop_timeout_seconds(state_dir: Path) -> float:
    """More than all children may take: a worker that is killed with its supervisor loses what it drains."""
    state = read_stack_state(state_dir)
    reported = state.stop_timeout_seconds + STOP_MARGIN_SECONDS if state else 0.0
    return max(STOP_TIMEOUT_SECONDS, reported)


def _signal_until_gone(state_dir: Path, number: signal.Signals, timeout_seconds: float) -> bool:
    """Looks for the process again and again: one that is just starting has not written its state yet."""
    deadline = time.monotonic() + timeout_seconds
    signalled: set[int] = set()
    while is_locked(state_dir):
        state = read_stack_state(state_dir)
        is_new = state is not None and state.supervisor_pid not in signalled
        if state is not None and is_new and is_supervisor(state.supervisor_pid, state_dir):
            # Once for each process: a second signal would make it leave without order.
            signalled.add(state.supervisor_pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.supervisor_pid, number)
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)  # noqa: TID251  # this is a poll with a deadline
    _wait_for_end(signalled)
    return True


def is_supervisor(pid: int, state_dir: Path) -> bool:
    """Whether the process has the lock open: the file alone could name any process of ours."""
    lock = str((state_dir / LOCK_FILE).resolve())
    try:
        return any(file.path == lock for file in psutil.Process(pid).open_files())
    except psutil.Error:
        return False


def _wait_for_end(pids: set[int]) -> None:
    """The lock is released a moment before the process ends; callers expect the process to be gone."""
    deadline = time.monotonic() + EXIT_TIMEOUT_SECONDS
    while any(_is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)  # noqa: TID251  # this is a poll with a deadline


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
