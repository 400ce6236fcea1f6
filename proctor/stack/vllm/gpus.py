"""GPUs of this machine."""

import shutil
import subprocess

# Without its persistence daemon the driver is loaded anew, which takes some seconds.
_ANSWER_SECONDS = 20.0


def list_gpus() -> list[str]:
    """Names that the driver reports; empty if it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = (program, "--query-gpu=name,memory.total", "--format=csv,noheader")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]
