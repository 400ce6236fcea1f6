"""The starter model, which vLLM's Python trains once."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from proctor.stack.defaults import starter_model_dir
from proctor.stack.errors import EnvironmentBroken
from proctor.stack.supervision.child import Report
from proctor.stack.vllm.lock import one_at_a_time
from proctor.starter.make_rows import is_current

# The progress bars of the model library do not help a person who waits for the model.
_QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}


def ensure_starter_model(python: Path, environ: Mapping[str, str], report: Report) -> Path:
    """The starter model's folder, built by vLLM's python where there is none of today's recipe."""
    folder = starter_model_dir(environ)
    if is_current(folder):
        return folder
    with one_at_a_time(folder.with_name(f"{folder.name}.lock")):
        if not is_current(folder):
            report(f"Training the starter model into {folder} (once; up to three minutes)")
            _build_model(python, folder, environ)
    return folder


def _build_model(python: Path, folder: Path, environ: Mapping[str, str]) -> None:
    command = (str(python), "-m", "proctor.starter.make_model", str(folder))
    done = subprocess.run(command, env={**environ, **_QUIET, "PYTHONUNBUFFERED": "1"}, check=False)
    if done.returncode != 0 or not is_current(folder):
        raise EnvironmentBroken(
            problem=f"The starter model was not built: `{' '.join(command)}` failed (see above)."
        )
