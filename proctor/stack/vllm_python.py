"""Where vLLM's own environment lies, and the python in it: its pins would bind every service otherwise."""

from collections.abc import Mapping
from pathlib import Path

from proctor.stack.stack_options import project_dir

CHECKOUT = Path(__file__).resolve().parents[2]
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
