"""The code of an earlier release out of the history: that of before the newest migration."""

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from services.common.migrations import read_migrations
from services.results.postgres import MIGRATIONS as RESULTS
from services.scheduler.postgres import MIGRATIONS as SCHEDULER

ROOT = Path(__file__).parents[3]
_CODE = ("proctor", "services", "suites")
_BASELINE = "protos/baseline"


def earlier_release(folder: Path) -> Path:
    """A folder with the code of before the last change of a schema. The test is skipped where there is none.

    A checkout may have no history; and code that a migration shuts out, or whose contracts were restarted, is
    not expected to work beside today's.
    """
    revision = _before_newest_migration()
    if revision is None:
        pytest.skip("this checkout has no history with an earlier release")
    if _git("show", f"{revision}:{_BASELINE}") != (ROOT / _BASELINE).read_bytes():
        pytest.skip("the contracts were restarted since the earlier release")
    archive = _git("archive", "--format=tar", revision, *_CODE)
    assert archive is not None
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    if _is_shut_out(folder):
        pytest.skip("a migration shuts the earlier release out, by its mark")
    return folder


def _before_newest_migration() -> str | None:
    adding = _git("log", "-1", "--format=%H", "--diff-filter=A", "--", "services/*/migrations/*.sql")
    revision = f"{(adding or b'').decode().strip()}^"
    return revision if adding and _git("cat-file", "-e", revision) is not None else None


def _is_shut_out(folder: Path) -> bool:
    for migrations in (SCHEDULER, RESULTS):
        known = {each.name for each in read_migrations(folder / migrations.relative_to(ROOT))}
        later = [each for each in read_migrations(migrations) if each.name not in known]
        if any(each.compatible_from not in known for each in later):
            return True
    return False


def _git(*arguments: str) -> bytes | None:
    """None where git fails, or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
