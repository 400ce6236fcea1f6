"""The reference of the field in a virtual environment of its own: made once and kept for later tests."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "lm_eval_requirements.txt"
PACKAGES = Path(__file__).parent / "task_code_requirements.txt"
_LIMIT_SECONDS = 540.0
_READY = "ready"
_QUIET_AND_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore",
}


def lm_eval_python() -> Path:
    """Its interpreter. PROCTOR_LM_EVAL_VENV names a folder that has it already; otherwise one is made."""
    given = os.environ.get("PROCTOR_LM_EVAL_VENV")
    return _interpreter(Path(given) if given else _made_venv())


@cache
def lm_eval_tasks() -> Path:
    """The folder of its tasks."""
    [folder] = lm_eval_python().parent.parent.glob("lib/*/site-packages/lm_eval/tasks")
    return folder


@cache
def task_packages() -> Path:
    """A folder of packages that the code of tasks imports in sandboxes: made once, by their interpreter.

    Not below the home of root, which the users of sandboxes cannot enter.
    """
    digest = hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"proctor-packages-{digest}"
    with _locked(folder.with_suffix(".lock")):
        if not (folder / _READY).exists():
            shutil.rmtree(folder, ignore_errors=True)
            pip = ["python3", "-m", "pip", "install", "--quiet", "--target", str(folder), "-r", str(PACKAGES)]
            subprocess.run(pip, check=True, timeout=_LIMIT_SECONDS)
            (folder / _READY).touch()
    return folder


def run_in_lm_eval(
    arguments: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    input_text: str = "",
    limit_seconds: float = _LIMIT_SECONDS,
) -> str:
    """What `python <arguments>` prints there. Where it fails, its last words are in the error."""
    # Without PYTHONPATH of the test: what is compared must not come from our own tree.
    variables = {**os.environ, **_QUIET_AND_OFFLINE, **(environment or {})}
    variables.pop("PYTHONPATH", None)
    command = [str(lm_eval_python()), *map(str, arguments)]
    done = subprocess.run(
        command,
        input=input_text,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_seconds,
    )
    if done.returncode:
        raise RuntimeError(f"{command} exited with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


def _made_venv() -> Path:
    """One per list of requirements, so that a changed list makes another."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "proctor"
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    venv = cache / f"lm-eval-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"lm-eval-{digest}.lock"):
        if not (venv / _READY).exists():
            _make(venv)
    return venv


def _make(venv: Path) -> None:
    shutil.rmtree(venv, ignore_errors=True)
    make = [sys.executable, "-m", "venv", "--without-pip", str(venv)]
    subprocess.run(make, check=True, timeout=_LIMIT_SECONDS)
    pip = [sys.executable, "-m", "pip", "--python", str(_interpreter(venv)), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "-r", str(REQUIREMENTS)], check=True, timeout=_LIMIT_SECONDS)
    (venv / _READY).touch()


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Processes that want the same environment at once make it once."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _interpreter(venv: Path) -> Path:
    return venv / "bin" / "python"


if __name__ == "__main__":
    lm_eval_python()
