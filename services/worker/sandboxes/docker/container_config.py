"""The configuration of a container: no network, no privileges, and limits of all that can be used up."""

from collections.abc import Sequence
from typing import Any

from services.common.sandboxes.sandbox import SandboxSpec
from services.worker.sandboxes.container.programs import HOME
from services.worker.sandboxes.docker.seccomp import profile

_MIB = 1024**2
_TMP_BYTES, _HOME_BYTES, _SHARED_BYTES = 64 * _MIB, 16 * _MIB, 16 * _MIB
# podman puts writable folders there where the root is read-only.
_CLOSED = ("/run", "/var/tmp")  # noqa: S108  # inside
_OPEN_FILES = 1024
# Users of the container's own: limits that the kernel counts by user are not shared between sandboxes.
FIRST_USER, USERS = 10_000, 50_000
# Docker's own list, and the command line of the machine's kernel.
_MASKED = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/cmdline",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
]

Config = dict[str, Any]


class ContainerDialect:
    """The differences of Docker and podman, which reads the filter of system calls from a file."""

    def __init__(self, *, machine: str, podman_profile: str = "") -> None:
        self._is_podman = bool(podman_profile)
        seccomp = podman_profile or profile(machine)
        self.security = ["no-new-privileges", f"seccomp={seccomp}"]
        if self._is_podman:
            self.security.append("mask=/proc/cmdline")

    @property
    def masked(self) -> Config:
        return {} if self._is_podman else {"MaskedPaths": _MASKED}

    def folder(self, size: int, files: int = 0, mode: str = "1777") -> str:
        """podman would copy the image's files into the folder; Docker does not."""
        options = f"rw,nosuid,nodev,size={size},mode={mode}"
        if self._is_podman:
            return f"{options},notmpcopyup"
        return f"{options},nr_inodes={files}" if files else options


def sandbox_config(spec: SandboxSpec, image: str, user: int, dialect: ContainerDialect) -> Config:
    limits = spec.limits
    own = {} if spec.shows_image else {"/tmp": _TMP_BYTES, HOME: _HOME_BYTES}  # noqa: S108  # inside
    folders = {
        **{path: dialect.folder(size, limits.files) for path, size in own.items()},
        **{path: dialect.folder(4096, mode="0755") for path in _CLOSED},
        **{path: dialect.folder(limits.disk_bytes, limits.files) for path in (*spec.writable, spec.workdir)},
    }
    host = {
        **_closed_host(dialect),
        "NetworkMode": "none",
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * 1e9),
        "PidsLimit": limits.processes,
        "ShmSize": _SHARED_BYTES,
        "Tmpfs": folders,
        "Ulimits": _ulimits(limits.processes),
    }
    return {**_held(image, user), "Hostname": "sandbox", "HostConfig": host}


def relay_config(beside: str, image: str, user: int, dialect: ContainerDialect) -> Config:
    """The relay shares the network of the sandbox and nothing else."""
    host = {
        **_closed_host(dialect),
        "NetworkMode": f"container:{beside}",
        "Memory": 128 * _MIB,
        "MemorySwap": 128 * _MIB,
        "PidsLimit": 64,
        "Ulimits": _ulimits(64),
    }
    return {**_held(image, user), "HostConfig": host}


def _held(image: str, user: int) -> Config:
    """Standard input closes when the worker's connection does, which ends the first process."""
    return {
        "Image": image,
        "User": f"{user}:{user}",
        "WorkingDir": "/",
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "Healthcheck": {"Test": ["NONE"]},
    }


def _closed_host(dialect: ContainerDialect) -> Config:
    return {
        **dialect.masked,
        "AutoRemove": True,
        "CapDrop": ["ALL"],
        "IpcMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "Privileged": False,
        "ReadonlyRootfs": True,
        "SecurityOpt": dialect.security,
    }


def _ulimits(processes: int) -> Sequence[Config]:
    limits = {"core": 0, "memlock": 65536, "nofile": _OPEN_FILES, "nproc": processes + 64}
    return [{"Name": name, "Soft": most, "Hard": most} for name, most in limits.items()]
