"""Two releases that may share schemas, streams and runs: that of before the newest migration, and today's.

Where the history has none that may, today's is the earlier one. The later one is then today's code with one
more migration of each schema.
"""

import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from services.common.migrations import read_migrations
from services.results.postgres import MIGRATIONS as RESULTS
from services.scheduler.postgres import MIGRATIONS as SCHEDULER

ROOT = Path(__file__).parents[3]
_CODE = ("proctor", "services", "suites")
_BASELINE = "protos/baseline"


@dataclass(frozen=True)
class MixedReleases:
    """Folders with code; None is today's, as it lies here."""

    earlier: Path | None
    later: Path | None


def mixed_releases(folder: Path) -> MixedReleases:
    earlier = _release_of_before(folder / "earlier")
    if earlier is not None:
        return MixedReleases(earlier, None)
    return MixedReleases(None, _release_of_tomorrow(folder / "later"))


def _release_of_tomorrow(folder: Path) -> Path:
    for part in _CODE:
        shutil.copytree(ROOT / part, folder / part)
    for migrations in (SCHEDULER, RESULTS):
        newest = max(file.name for file in migrations.glob("*.sql"))
        added = folder / migrations.relative_to(ROOT) / f"{int(newest[:4]) + 1:04}_tomorrow.sql"
        added.write_text(f"-- compatible-from: {newest}\nCREATE TABLE tomorrow (day date PRIMARY KEY);\n")
    return folder


def _release_of_before(folder: Path) -> Path | None:
    """None without a history, after a restart of the contracts, and where a migration shuts that code out."""
    revision = _before_newest_migration()
    if revision is None or _git("show", f"{revision}:{_BASELINE}") != (ROOT / _BASELINE).read_bytes():
        return None
    archive = _git("archive", "--format=tar", revision, *_CODE)
    if archive is None:
        return None
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return None if _is_shut_out(folder) else folder


def _before_newest_migration() -> str | None:
    # Not those that an earlier one has taken in.
    files = [str(each.relative_to(ROOT)) for folder in (SCHEDULER, RESULTS) for each in folder.glob("*.sql")]
    adding = _git("log", "-1", "--format=%H", "--diff-filter=A", "--", *files)
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
