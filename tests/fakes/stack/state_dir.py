"""State folders for tests, reachable by the user that Postgres runs as when the tests run as root."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary_state_dir() -> Iterator[Path]:
    """Not pytest's tmp_path, which only its owner may enter: Postgres would move its data out of it."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-test-"))
    folder.chmod(0o755)
    try:
        yield folder / "state"
    finally:
        shutil.rmtree(folder)
