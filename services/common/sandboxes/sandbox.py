"""A sandbox: what an engine is asked to make, the commands that run inside, and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_MIB = 1024**2
# The exit code of a command that SIGKILL ended (128 + 9), as a shell reports it.
KILLED = 137
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class Network(StrEnum):
    """Network of a sandbox: none, or one listening socket of the worker on its own loopback."""

    NONE = "none"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """`disk_bytes` is for each writable folder, and for all plain ones together; `files` are inodes, over
    all writable folders.
    """

    cpus: float = 1.0
    memory_bytes: int = 512 * _MIB
    disk_bytes: int = 256 * _MIB
    processes: int = 64
    files: int = 100_000


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """`workdir` is a writable folder too. An empty `image` is the engine's own root file system.

    After `lifetime_seconds` the sandbox is closed, whatever runs in it. `can_lower_limits`: the operator's
    bound lowers the limits, which no task asked for; otherwise a sandbox above it is refused.

    `shown` are folders of this machine and their places inside, read-only: for the engine of processes alone.

    `shows_image`: `workdir` alone hides what the image has, so there are no writable /home and /tmp.

    `is_read_only`: `/tmp` alone can be written to, up to 64 MiB; for the engine of processes alone.

    `plain` are those of `writable` that the engine of processes makes as folders of a root that is writable
    too, as in a container: commands may move them, and write beside them. The others are mounts.
    """

    workdir: str = "/work"
    writable: tuple[str, ...] = ()
    image: str = ""
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    network: Network = Network.NONE
    lifetime_seconds: float = 3600.0
    labels: Mapping[str, str] = field(default_factory=dict)
    can_lower_limits: bool = False
    shown: tuple[tuple[str, str], ...] = ()
    shows_image: bool = False
    is_read_only: bool = False
    plain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments. It gets no variables but `env`, PATH and HOME, and no terminal.

    The first and last `output_bytes` / 2 of its output are kept, standard output and standard error in one.
    `watched` are files of one folder whose uses are counted, by engines that can.
    """

    argv: tuple[str, ...]
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    timeout_seconds: float = 60.0
    output_bytes: int = 100_000
    watched: tuple[str, ...] = ()


class Ended(StrEnum):
    """How a command ended. Only EXITED has an exit code of the program's own."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUT_OF_DISK = "out_of_disk"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """`exit_code` is 128 + signal where a signal ended the program.

    `tail` is empty where all fits in `head`. `uses`: how often `watched` files were opened, closed,
    made or replaced since the last command that watched them; None where that is not known.
    """

    exit_code: int
    head: bytes
    tail: bytes = b""
    total_bytes: int = 0
    ended: Ended = Ended.EXITED
    seconds: float = 0.0
    uses: int | None = None

    @property
    def is_success(self) -> bool:
        return self.ended is Ended.EXITED and self.exit_code == 0

    @property
    def text(self) -> str:
        """Head and tail, with the number of bytes left out between them."""
        head = self.head.decode("utf-8", "replace")
        left_out = self.total_bytes - len(self.head) - len(self.tail)
        if left_out <= 0:
            return head + self.tail.decode("utf-8", "replace")
        return f"{head}\n[{left_out} bytes left out]\n{self.tail.decode('utf-8', 'replace')}"


@dataclass(frozen=True, slots=True)
class TarLimits:
    """The most that is taken out of a sandbox at a time: bytes of content, and files, folders and links.

    The defaults bound what was taken before, within limits of its own.
    """

    total_bytes: int = 1024 * _MIB
    members: int = 1_000_000

    @property
    def stream_bytes(self) -> int:
        """The most bytes of a tar within the limits, with its headers and its end."""
        return self.total_bytes + self.members * 2048 + 20_480


@dataclass(frozen=True, slots=True)
class RootParts:
    """What is taken of a root that can be written to. `without` are patterns of paths from it, as of `find`,
    which leave out folders with all in them; `kept` are taken nevertheless.
    """

    without: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Isolation:
    """Isolation and limits that an engine can enforce on this machine.

    `problem` says in one sentence why it cannot isolate, and is empty where it can. `unlimited` names what it
    isolates but cannot limit.
    """

    engine: str
    problem: str = ""
    unlimited: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
