"""Where vLLM's own environment lies, and the python in it: its pins would bind every service otherwise.
What `make run` needs before the stack: vLLM's environment and the starter model, each made once.

`python -m proctor.stack.vllm.environment` makes both, and does nothing, quickly, when both are there.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from proctor.stack.errors import EnvironmentBroken
from proctor.stack.options import project_dir, starter_model_dir
from proctor.stack.vllm.install import CPU_PINS, VLLM_VERSION, Installation, gpu_answers, install
from proctor.starter.model_stamp import is_current

CHECKOUT = Path(__file__).resolve().parents[3]
ENVIRONMENT_NAME = ".venv-vllm"


def vllm_environment_dir(current: Path) -> Path:
    """Beside the sources in a checkout, else in the current project."""
    is_checkout = (CHECKOUT / "pyproject.toml").exists()
    return (CHECKOUT if is_checkout else project_dir(current)) / ENVIRONMENT_NAME


def find_vllm_python(environ: Mapping[str, str], current: Path) -> Path | None:
    """PROCTOR_VLLM_PYTHON, else the environment's python where there is one."""
    given = environ.get("PROCTOR_VLLM_PYTHON")
    if given:
        return Path(given)
    python = vllm_environment_dir(current) / "bin" / "python"
    return python if python.exists() else None


STAMP = "proctor-installed"
WORKER_EXTRAS = ("service", "worker")

Report = Callable[[str], None]


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
    """What decides what is installed, and the path: an environment cannot be moved."""
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
    """From nothing: of a killed pip's packages, some look installed and are not whole."""
    with_gpu = gpu_answers()
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
    done = subprocess.run(command, env={**environ, "PYTHONUNBUFFERED": "1"}, check=False)
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
