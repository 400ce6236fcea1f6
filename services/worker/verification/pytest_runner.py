"""pytest as a tar, for sandboxes whose Python has none: taken from the worker's own installation."""

from functools import cache
from importlib.metadata import PackagePath, distribution

from services.worker.sandboxes.tar_files import PackedFile, pack

# Tests of tasks start pytest by its name, and install it first, which no sandbox without a network can.
_PROGRAMS = {
    "bin/pytest": b'#!/bin/sh\nexec python3 -m pytest "$@"\n',
    "bin/pip": b"""#!/bin/sh
for word in "$@"; do
  case "$word" in install|-*|pip|pytest|pytest[=\\<\\>~]*) ;;
  *) echo "pip: $word cannot be installed: a sandbox has no network" >&2; exit 1 ;; esac
done
""",
}
_PROGRAMS["bin/pip3"] = _PROGRAMS["bin/pip"]
_PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
# pytest imports these; the other 300 are ten times the size of the rest, and each takes a moment to unpack.
_OF_PYGMENTS = {
    "lexers": {"__init__.py", "_mapping.py", "diff.py", "python.py"},
    "formatters": {"__init__.py", "_mapping.py", "terminal.py"},
    "styles": {"__init__.py", "_mapping.py", "default.py"},
}


@cache
def pytest_runner() -> bytes:
    """The same bytes for the same installation."""
    files: dict[str, bytes | PackedFile] = {
        str(file): file.locate().read_bytes()  # type: ignore[attr-defined]  # a path of this machine
        for package in _PACKAGES
        for file in distribution(package).files or ()
        if _is_needed(file)
    }
    programs = {name: PackedFile(content, 0o755) for name, content in _PROGRAMS.items()}
    return pack(files | programs)


def _is_needed(file: PackagePath) -> bool:
    """Code, and the metadata by which pytest finds its own version."""
    if file.parts[0] == ".." or file.suffix == ".pyc":
        return False
    if file.parts[0] == "pygments" and file.parts[1] in _OF_PYGMENTS:
        return file.name in _OF_PYGMENTS[file.parts[1]]
    return file.suffix == ".py" or file.name in {"METADATA", "entry_points.txt"}
