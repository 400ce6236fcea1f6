"""Control groups of sandboxes, version 1 or 2, where this process may make them."""

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "proctor-sandbox-"
# The kernel's default: long enough that few switches are made, short enough that a pause is not felt.
_PERIOD_MICROSECONDS = 100_000
_NEEDED = ("memory", "pids", "cpu")


@dataclass(frozen=True, slots=True)
class GroupLimits:
    memory_bytes: int
    processes: int
    cpus: float


@dataclass(slots=True)
class Group:
    """The folders of one sandbox: one for each controller (version 1), or a single one (version 2)."""

    folders: Mapping[str, Path]

    @property
    def process_files(self) -> list[Path]:
        return sorted({folder / "cgroup.procs" for folder in self.folders.values()})

    def add(self, *processes: int) -> None:
        for file in self.process_files:
            for process in processes:
                file.write_text(str(process), encoding="ascii")

    def processes(self) -> int:
        """Processes and threads, also those that have ended and were not waited for."""
        return int(_read(self.folders["pids"] / "pids.current"))

    def oom_kills(self) -> int:
        for name in ("memory.events", "memory.oom_control"):
            with suppress(FileNotFoundError):
                lines = _read(self.folders["memory"] / name).splitlines()
                return sum(int(line.split()[1]) for line in lines if line.startswith(b"oom_kill "))
        return 0

    def remove(self) -> bool:
        """False where a process still is in it: it has been killed, and the call is made again later."""
        is_removed = True
        for folder in set(self.folders.values()):
            for process in _processes(folder):
                _kill(process)
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                is_removed = False
        return is_removed


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The place where groups are made. Without `parents` this process may make none; `problem` says why."""

    parents: Mapping[str, Path] = field(default_factory=dict)
    version: int = 0
    problem: str = ""

    def make(self, name: str, limits: GroupLimits) -> Group:
        """Raises OSError; nothing is left behind then."""
        group = Group({controller: parent / name for controller, parent in self.parents.items()})
        try:
            for folder in set(group.folders.values()):
                folder.mkdir()
            for controller, values in _settings(limits, self.version).items():
                for file, value in values:
                    _write(group.folders[controller] / file, value)
        except OSError:
            group.remove()
            raise
        return group

    def left_behind(self) -> Iterable[Group]:
        """Groups whose launcher is dead: the name holds its process and when that started."""
        names = {
            path.name
            for parent in set(self.parents.values())
            for path in parent.glob(f"{PREFIX}*")
            if not _is_alive(path.name)
        }
        for name in sorted(names):
            yield Group({controller: parent / name for controller, parent in self.parents.items()})


def group_name(number: int) -> str:
    return f"{PREFIX}{os.getpid()}-{_start_time(os.getpid())}-{number}"


def find_hierarchy(root: Path = Path("/")) -> Hierarchy:
    """Tries it: a group with limits is made and removed."""
    found = _mounted(root)
    if not found.parents:
        return found
    try:
        group = found.make(group_name(0), GroupLimits(64 * 1024**2, 16, 1.0))
    except OSError as error:
        return Hierarchy(problem=f"{error.strerror or error}: {error.filename}")
    group.remove()
    return found


def _mounted(root: Path) -> Hierarchy:
    own = dict(_own_groups(root))
    mounts: dict[str, Path] = {}
    unified: Path | None = None
    for line in (root / "proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        mount_root, mount_point = before.split(" ")[3:5]
        mounted = Path(f"{root}{mount_point}")
        if kind == "cgroup":
            for controller in set(options.split(",")) & set(_NEEDED) & set(own):
                mounts[controller] = _below(mounted, own[controller], mount_root)
        elif kind == "cgroup2" and "" in own:
            unified = _below(mounted, own[""], mount_root)
    if set(mounts) == set(_NEEDED):
        return Hierarchy(mounts, version=1)
    if unified is not None and _delegate(unified, own[""]):
        return Hierarchy(dict.fromkeys(_NEEDED, unified), version=2)
    return Hierarchy(problem="no control group of its own with memory, pids and cpu was delegated")


def _own_groups(root: Path) -> Iterable[tuple[str, str]]:
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _below(mounted: Path, path: str, mount_root: str) -> Path:
    """A group is named from the root of its hierarchy, of which only a part may be mounted."""
    relative = path.removeprefix(mount_root.rstrip("/")).lstrip("/")
    inside = mounted / relative
    return inside if inside.is_dir() else mounted


def _delegate(folder: Path, path: str) -> bool:
    """Lets groups be made below `folder`. In version 2 its processes must be in a group of their own then.

    They are moved only where the folder is this process's to arrange, and not its session's.
    """
    try:
        if not set(_NEEDED) <= set((folder / "cgroup.controllers").read_text(encoding="ascii").split()):
            return False
        if set(_NEEDED) <= set((folder / "cgroup.subtree_control").read_text(encoding="ascii").split()):
            return True
        if not _is_delegated(folder, path):
            return False
        # Version 2 allows processes only in groups without groups below them.
        leaf = folder / "proctor-services"
        leaf.mkdir(exist_ok=True)
        for process in _processes(folder):
            _write(leaf / "cgroup.procs", str(process))
        _write(folder / "cgroup.subtree_control", " ".join(f"+{controller}" for controller in _NEEDED))
    except OSError:
        return False
    return True


def _is_delegated(folder: Path, path: str) -> bool:
    """A container's own root, or marked so by systemd (`Delegate=yes`)."""
    if path == "/":
        return True
    for mark in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(folder, mark) == b"1":
                return True
        except OSError:
            continue
    return False


def _settings(limits: GroupLimits, version: int) -> dict[str, list[tuple[str, str]]]:
    # The kernel takes no less than a millisecond.
    quota = max(1000, int(limits.cpus * _PERIOD_MICROSECONDS))
    memory = str(limits.memory_bytes)
    if version == 1:
        return {
            "memory": [("memory.limit_in_bytes", memory)],
            "pids": [("pids.max", str(limits.processes))],
            "cpu": [("cpu.cfs_period_us", str(_PERIOD_MICROSECONDS)), ("cpu.cfs_quota_us", str(quota))],
        }
    return {
        "memory": [("memory.max", memory), ("memory.swap.max", "0")],
        "pids": [("pids.max", str(limits.processes))],
        "cpu": [("cpu.max", f"{quota} {_PERIOD_MICROSECONDS}")],
    }


def _read(file: Path) -> bytes:
    """A short one of the kernel's, in one call: each command of a sandbox reads some."""
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(opened, 4096)
    finally:
        os.close(opened)


def _write(file: Path, value: str) -> None:
    try:
        file.write_text(value, encoding="ascii")
    except FileNotFoundError:
        # A kernel without swap accounting has no such file.
        if file.name != "memory.swap.max":
            raise


def _processes(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _is_alive(name: str) -> bool:
    process, started, *_ = name.removeprefix(PREFIX).split("-")
    return process.isdecimal() and started == str(_start_time(int(process)))


def _start_time(process: int) -> int:
    """Clock ticks since the machine's start; -1 where there is no such process."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    # Field 22 of stat, counted behind the name, which may hold spaces.
    return int(line.rpartition(")")[2].split()[19])
