"""podman's Docker-compatible service for tests, in a folder of its own: it needs root and no registry.

Its base image is made of programs of this machine: a shell, the usual commands, git and python3.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.processes import bound, killed_at_the_end

BASE_IMAGE = "localhost/proctor-sandbox:test"
_START_SECONDS, _REMOVE_SECONDS = 60.0, 20.0
_PYTHON = "/usr/bin/python3"
_PROGRAMS = """
base64 basename bash cat chmod cp cut date dash dirname echo env find git grep head id ln ls mkdir mv nice
nproc openssl printf ps rm sed seq setsid sha256sum sleep sort stat tail tar test touch tr true unshare wc yes
"""
_LIBRARY = re.compile(r"(/\S+) \(0x")
_CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
exit_command_delay = 2
"""
_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""


def problem() -> str:
    """Why podman cannot run here; empty where it can."""
    if os.geteuid() != 0:
        return "podman's service is tested as root"
    missing = [name for name in ("podman", "runc", "conmon") if not _which(name)]
    return f"not installed: {', '.join(missing)}" if missing else ""


def _which(program: str) -> str | None:
    return shutil.which(program, path="/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin")


@dataclass(frozen=True, slots=True)
class Podman:
    socket: str
    environment: dict[str, str]

    def run(self, *arguments: str) -> str:
        command = ("/usr/bin/podman", *arguments)
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout


@contextmanager
def podman_service() -> Iterator[Podman]:
    folder = Path(tempfile.mkdtemp(prefix="proctor-podman-"))
    try:
        with _service(folder) as podman:
            yield podman
    finally:
        _remove(folder)


@contextmanager
def _service(folder: Path) -> Iterator[Podman]:
    (folder / "containers.conf").write_text(_CONTAINERS)
    (folder / "storage.conf").write_text(_STORAGE.format(folder=folder))
    environment = {
        **os.environ,
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    podman = Podman(f"{folder}/docker.sock", environment)
    base = folder / "base.tar"
    _write_base(base)
    podman.run("import", "--quiet", str(base), BASE_IMAGE)
    base.unlink()
    command = bound("/usr/bin/podman", "system", "service", "--time=0", f"unix://{podman.socket}")
    with (
        (folder / "service.log").open("wb") as log,
        # Its monitors write into the folder where they are started.
        killed_at_the_end(
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        ) as service,
    ):
        try:
            _wait_for(folder / "docker.sock", service)
            yield podman
        finally:
            with contextlib.suppress(subprocess.SubprocessError):
                podman.run("rm", "--all", "--force", "--volumes", "--time=0")


def _remove(folder: Path) -> None:
    """podman mounts its storage on itself; programs that clean up after containers may do so once more."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        for mounted in sorted((one for one in mounts if one.startswith(f"{folder}/")), reverse=True):
            subprocess.run(("umount", "--lazy", mounted), check=False, timeout=20)
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)  # noqa: TID251  # polls with a deadline


def _wait_for(socket: Path, service: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not socket.exists():
        assert service.poll() is None, "podman's service ended"
        assert time.monotonic() < deadline, "podman's service does not listen"
        time.sleep(0.02)  # noqa: TID251  # polls with a deadline


def _write_base(path: Path) -> None:
    with tarfile.open(path, "w") as tar:
        for link, target in (
            ("bin", "usr/bin"),
            ("lib", "usr/lib"),
            ("lib64", "usr/lib64"),
            ("sbin", "usr/sbin"),
        ):
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
        for folder in ("etc", "usr/sbin", "tmp", "home"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
        for file in sorted(_base_files()):
            tar.add(Path(file).resolve(), _inside(file), recursive=False)
        tar.add("/usr/bin/dash", "usr/bin/sh")
        tar.add(library_folder(), library_folder().lstrip("/"), filter=_without_packages)


def _inside(file: str) -> str:
    """`/bin` and `/lib` are links in the image."""
    path = file.lstrip("/")
    return path if path.startswith("usr/") else f"usr/{path}"


def library_folder() -> str:
    """Where the machine's own python3, which may not be the one of the tests, has its library."""
    code = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    return subprocess.run(
        (_PYTHON, "-I", "-c", code), capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()


def _without_packages(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = {"dist-packages", "test", "idlelib", "lib2to3"}
    return None if left_out & set(member.name.split("/")) or "config-" in member.name else member


def _base_files() -> set[str]:
    programs = {found for name in _PROGRAMS.split() if (found := shutil.which(name, path="/usr/bin:/bin"))}
    extensions = Path(library_folder(), "lib-dynload").glob("*.so")
    files = programs | {_PYTHON}
    for file in (*files, *map(str, extensions)):
        answer = subprocess.run(("ldd", file), capture_output=True, text=True, check=False, timeout=20)
        files |= set(_LIBRARY.findall(answer.stdout))
    return files
