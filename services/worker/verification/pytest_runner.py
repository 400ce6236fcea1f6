"""pytest as a tar, for sandboxes whose Python has none: taken from the worker's own installation.

Its packages are one zip file, which Python imports from: a hundred files would each take a moment to unpack.
They are compiled, since nothing keeps compiled code from one sandbox to the next. A Python of another version
than the worker's compiles the source instead.
"""

import io
import marshal
from functools import cache
from importlib.metadata import PackagePath, distribution
from importlib.util import MAGIC_NUMBER, source_hash
from threading import Lock
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from services.worker.sandboxes.tar_files import PackedFile, pack

RUNNER = "/opt/runner"
_ZIP = "packages.zip"
PACKAGES = f"{RUNNER}/{_ZIP}"
# A flag of PEP 552: the compiled file is not compared with the source beside it.
_UNCHECKED = (1).to_bytes(4, "little")
_making = Lock()

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
# pytest imports these; the other 300 are ten times the size of the rest.
_OF_PYGMENTS = {
    "lexers": {"__init__.py", "_mapping.py", "diff.py", "python.py"},
    "formatters": {"__init__.py", "_mapping.py", "terminal.py"},
    "styles": {"__init__.py", "_mapping.py", "default.py"},
}


def pytest_runner() -> bytes:
    """A tar for the folder RUNNER, the same for the same installation. The first call takes a second."""
    with _making:
        return _made()


@cache
def _made() -> bytes:
    files: dict[str, bytes | PackedFile] = {_ZIP: _zipped()}
    programs = {name: PackedFile(content, 0o755) for name, content in _PROGRAMS.items()}
    return pack(files | programs)


def _zipped() -> bytes:
    written = io.BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as packages:
        for package in _PACKAGES:
            for file in filter(_is_needed, distribution(package).files or ()):
                content = file.locate().read_bytes()  # type: ignore[attr-defined]  # a path of this machine
                packages.writestr(ZipInfo(str(file)), content, ZIP_DEFLATED)
                if file.suffix == ".py":
                    packages.writestr(ZipInfo(f"{file}c"), _compiled(str(file), content), ZIP_DEFLATED)
    return written.getvalue()


def _compiled(name: str, source: bytes) -> bytes:
    # pytest leaves its own lines out of a traceback by the paths of its files.
    code = compile(source, f"{PACKAGES}/{name}", "exec", dont_inherit=True)
    return MAGIC_NUMBER + _UNCHECKED + source_hash(source) + marshal.dumps(code)


def _is_needed(file: PackagePath) -> bool:
    """Code, and the metadata by which pytest finds its own version."""
    if file.parts[0] == ".." or file.suffix == ".pyc":
        return False
    if file.parts[0] == "pygments" and file.parts[1] in _OF_PYGMENTS:
        return file.name in _OF_PYGMENTS[file.parts[1]]
    return file.suffix == ".py" or file.name in {"METADATA", "entry_points.txt"}
