"""pytest as a tar, for sandboxes whose Python has none: taken from the worker's own installation."""

from functools import cache
from importlib.metadata import PackagePath, distribution

from services.worker.sandboxes.tar_files import PackedFile, pack

_PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
# pytest imports these two; the other 250 are ten times the size of the rest.
_LEXERS = frozenset({"__init__.py", "_mapping.py", "diff.py", "python.py"})


@cache
def pytest_runner() -> bytes:
    """The same bytes for the same installation."""
    files: dict[str, bytes | PackedFile] = {
        str(file): file.locate().read_bytes()  # type: ignore[attr-defined]  # a path of this machine
        for package in _PACKAGES
        for file in distribution(package).files or ()
        if _is_needed(file)
    }
    return pack(files)


def _is_needed(file: PackagePath) -> bool:
    """Code, and the metadata by which pytest finds its own version."""
    if file.parts[0] == ".." or file.suffix == ".pyc":
        return False
    if file.parts[:2] == ("pygments", "lexers"):
        return file.name in _LEXERS
    return file.suffix == ".py" or file.name in {"METADATA", "entry_points.txt"}
