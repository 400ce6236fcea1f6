"""promtool of Prometheus: that of the machine, or of Debian's package, fetched into the cache folder once."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from proctor.stack.defaults import default_cache_dir


@cache
def promtool() -> Path:
    """The test is skipped where there is neither."""
    found = shutil.which("promtool")
    if found:
        return Path(found)
    program = default_cache_dir(os.environ) / "promtool" / "promtool"
    if not program.exists():
        _fetch(program)
    return program


def _fetch(program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        try:
            for command in (
                ("apt-get", "download", "prometheus"),
                ("sh", "-c", 'dpkg -x "$0"*.deb .', "prometheus"),
            ):
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"this machine has no promtool, and apt-get cannot download it: {error}")
        made = program.with_suffix(f".{os.getpid()}")
        shutil.copy(Path(folder) / "usr" / "bin" / "promtool", made)
        made.rename(program)  # two test runs may fetch at a time
