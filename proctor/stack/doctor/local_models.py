"""vLLM's environment, the GPU, and the starter model."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from proctor.stack.doctor.finding import Finding, fine, warning
from proctor.stack.options import starter_model_dir
from proctor.stack.vllm.environment import find_vllm_python
from proctor.stack.vllm.install import GPU_QUESTION_LIMIT_SECONDS
from proctor.starter.model_stamp import is_current

_MAKE = "in a checkout `make vllm` makes it; models behind a server are served without it"
_DISTRIBUTION = re.compile(r"vllm-(?P<version>\d.*)\.dist-info")


def examine_vllm(environ: Mapping[str, str], current: Path) -> Finding:
    python = find_vllm_python(environ, current)
    if python is None or not python.exists():
        where = f"{python} does not exist" if python else "no environment with vLLM"
        return warning("vllm", f"{where}: no model can be loaded on this machine", _MAKE)
    version = vllm_version(python)
    if version is None:
        return warning("vllm", f"{python} has no vLLM", _MAKE)
    return fine("vllm", f"vLLM {version} ({python})")


def vllm_version(python: Path) -> str | None:
    """Read from the environment's files: asking vLLM itself takes seconds. The one that names its build."""
    folders = python.parent.parent.glob("lib/python3*/site-packages/vllm-*.dist-info")
    versions = [match["version"] for folder in folders if (match := _DISTRIBUTION.fullmatch(folder.name))]
    return max(versions, key=len, default=None)


def examine_gpu(environ: Mapping[str, str], current: Path) -> Finding:
    gpus = list_gpus()
    python = find_vllm_python(environ, current)
    version = vllm_version(python) if python else None
    is_for_cpu = version is not None and version.endswith("+cpu")
    if gpus and is_for_cpu:
        return warning(
            "gpu",
            f"{', '.join(gpus)}, but vLLM is the build for CPUs",
            "remove vLLM's environment and run `make vllm` again: it takes the build for the GPU",
        )
    if gpus:
        return fine("gpu", ", ".join(gpus))
    if version and not is_for_cpu:
        return warning(
            "gpu", "no NVIDIA GPU answers, but vLLM is the build for GPUs", "see what `nvidia-smi` says"
        )
    return fine("gpu", "none answers: vLLM runs on the CPU, which is enough for small models")


def list_gpus() -> list[str]:
    """Names that the driver reports; empty if it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = (program, "--query-gpu=name,memory.total", "--format=csv,noheader")
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=GPU_QUESTION_LIMIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]


def examine_starter_model(environ: Mapping[str, str]) -> Finding:
    folder = starter_model_dir(environ)
    if is_current(folder):
        return fine("starter model", str(folder))
    state = "was made by an older version" if folder.is_dir() else "is not there"
    return warning(
        "starter model", f"{folder} {state}", "`proctor up --model vllm/starter` trains it once, in minutes"
    )
