"""The state file of a running stack, by which `status`, `down` and the client find it; and its lock.

The file alone proves nothing (`kill -9` leaves it): a stack runs exactly while its supervisor holds the lock.
A folder where others can write is not used: it names processes to end and a gateway to send prompts to.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from proctor.stack.errors import StackAlreadyRunning, StateFolderUnusable

STATE_FILE = "stack.json"
LOCK_FILE = "stack.lock"


@dataclass(frozen=True, slots=True)
class ChildState:
    """`metrics` is the address of its metrics, where it serves any."""

    pid: int | None
    state: str
    restarts: int
    log: str
    metrics: str = ""


@dataclass(frozen=True, slots=True)
class StackState:
    """`phase` is starting, running or stopping; for its owner's eyes only, since the DSN has a password.

    `stop_timeout_seconds`: after that time its supervisor has killed what did not stop.
    """

    supervisor_pid: int
    phase: str
    gateway_http: str
    gateway_grpc: str
    postgres_dsn: str
    nats_url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, ChildState] = field(default_factory=dict)
    stop_timeout_seconds: float = 0.0


class StackLock:
    """Held by the supervisor while it lives; the kernel lets go of it however the supervisor ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, state_dir: Path) -> Self:
        make_state_folder(state_dir)
        try:
            # NOFOLLOW: a link that another user put there must not lead the lock elsewhere.
            descriptor = os.open(state_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unusable(state_dir, error) from error
        if not _lock_soon(descriptor):
            os.close(descriptor)
            state = _read_file(state_dir)
            process = f" (process {state.supervisor_pid})" if state else ""
            raise StackAlreadyRunning(state_dir=state_dir, process=process)
        return cls(descriptor)

    def release(self) -> None:
        os.close(self._descriptor)


def _lock_soon(descriptor: int) -> bool:
    """Tries for a moment, not once: `is_locked` of another process holds the lock while it looks."""
    for _ in range(10):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)  # noqa: TID251  # bounded by the range above
        else:
            return True
    return False


def is_locked(state_dir: Path) -> bool:
    try:
        _refuse_foreign(state_dir)
        descriptor = os.open(state_dir / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(state_dir, error) from error
    try:
        # A shared lock: processes that check at the same time do not take each other for a stack.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def make_state_folder(folder: Path) -> None:
    """No other account may list or read it. Where we are root, Postgres's user has to pass through it."""
    make_own_folder(folder, 0o711 if os.geteuid() == 0 else 0o700)


def make_own_folder(folder: Path, mode: int = 0o700) -> None:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        _refuse_foreign(folder)
        folder.chmod(mode)
    except OSError as error:
        raise _unusable(folder, error) from error


def _refuse_foreign(folder: Path) -> None:
    """A link must be ours as well as what it leads to."""
    entry = folder.stat()
    if {folder.lstat().st_uid, entry.st_uid} != {os.geteuid()}:
        raise StateFolderUnusable(folder=folder, reason="it belongs to another user; set PROCTOR_STATE_DIR")
    if entry.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StateFolderUnusable(folder=folder, reason="others may write there; forbid it (chmod go-w)")


def _unusable(state_dir: Path, error: OSError) -> StateFolderUnusable:
    return StateFolderUnusable(folder=state_dir, reason=error.strerror or str(error))


def read_stack_state(state_dir: Path) -> StackState | None:
    """The state of the stack that runs on this folder; None when none runs, whatever an old file says."""
    return _read_file(state_dir) if is_locked(state_dir) else None


def write_stack_state(state_dir: Path, state: StackState) -> None:
    write_private(state_dir / STATE_FILE, json.dumps(asdict(state), indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Completely or not at all, and for our eyes only."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    # Readers see the old file or the new one, never a part.
    draft.replace(path)


def remove_stack_state(state_dir: Path) -> None:
    (state_dir / STATE_FILE).unlink(missing_ok=True)


def _read_file(state_dir: Path) -> StackState | None:
    try:
        fields = json.loads((state_dir / STATE_FILE).read_text(encoding="utf-8"))
        children = {name: ChildState(**child) for name, child in fields.pop("children").items()}
        return StackState(**fields, children=children)
    except (OSError, ValueError, TypeError, KeyError):
        return None
