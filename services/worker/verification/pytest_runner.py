"""pytest and installers as a tar, for sandboxes whose Python has none: from the worker's own installation.

Its packages are one zip file, which Python imports from: a hundred files would each take a moment to unpack.
They are compiled, since nothing keeps compiled code from one sandbox to the next. A Python of another version
than the worker's compiles the source instead.
"""

import io
import marshal
from functools import cache
from importlib.metadata import PackagePath, distribution
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from threading import Lock
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from services.common.sandboxes.tar_files import PackedFile, pack

RUNNER = "/opt/runner"
_ZIP = "packages.zip"
PACKAGES = f"{RUNNER}/{_ZIP}"
SITE = f"{RUNNER}/site"
# A flag of PEP 552: the compiled file is not compared with the source beside it.
_UNCHECKED = (1).to_bytes(4, "little")
_making = Lock()

# Tests of tasks start pytest by its name, and fetch and install first what is there already.
_FOLDER = Path(__file__).parent / "programs"
_PROGRAMS = {
    "install.py": "install.py",
    "bin/have-uv": "have-uv.sh",
    **dict.fromkeys(("bin/pytest", "bin/py.test"), "pytest.sh"),
    **dict.fromkeys(("bin/pip", "bin/pip3", "bin/uv", "bin/uvx", "bin/pipx"), "install.sh"),
    **dict.fromkeys(("bin/apt", "bin/apt-get"), "apt.sh"),
    **dict.fromkeys(("bin/curl", "bin/wget"), "fetch.sh"),
}
_MAINS = {
    "pip/__init__.py": "",
    # Whether or not the machine has pip.
    "pip/__main__.py": "from pip._internal.cli.main import main\n\nmain()\n",
    "pip/_internal/__init__.py": "",
    # What the programs of a virtual environment import.
    "pip/_internal/cli/__init__.py": "",
    "pip/_internal/cli/main.py": """import runpy, sys

def main(args=None):
    sys.argv[:1] = [__file__.rsplit("/", 5)[0] + "/install.py", "pip"]
    runpy.run_path(sys.argv[0], run_name="__main__")
""",
    # Tests may throw away the output that says why none of them ran, or that they failed.
    # What is tested has no use for the arguments, which name the files of its tests.
    "pytest/__main__.py": """import pytest, sys

class Kept:
    passed = failed = 0
    def pytest_runtest_logreport(self, report):
        self.failed += report.failed
        self.passed += report.passed and report.when == "call"
    def pytest_collectreport(self, report):
        self.failed += report.failed

def note(text):
    try:
        with open("/logs/verifier/pytest.log", "a") as log:
            log.write(text)
    except OSError:
        pass

if __name__ == "__main__":
    note("began\\n")
    arguments, kept = sys.argv[1:], Kept()
    del sys.argv[1:], getattr(sys, "orig_argv", [])[1:]
    try:
        code = pytest.main(arguments, plugins=[kept])
        sys.stdout.flush()
    except BrokenPipeError:
        code = 1
    if code in (3, 4, 5):
        note(f"pytest ended with exit code {int(code)}\\n")
    note(f"kept: {kept.passed} passed, {kept.failed} failed\\n")
    raise SystemExit(code)
""",
}
_PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "pytest-json-ctrf")
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
    programs = {
        name: PackedFile((_FOLDER / source).read_bytes(), 0o755) for name, source in _PROGRAMS.items()
    }
    return pack(files | programs)


def _zipped() -> bytes:
    written = io.BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as packages:
        for name, source in _MAINS.items():
            packages.writestr(ZipInfo(name), source, ZIP_DEFLATED)
        for package in _PACKAGES:
            for file in filter(_is_needed, distribution(package).files or ()):
                if str(file) in _MAINS:
                    continue
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
