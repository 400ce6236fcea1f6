"""Finds files that an agent left which may influence its tests, and cannot be removed."""

import io
import json
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import join, normpath

from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import ReadFile, read_files
from services.worker.verification.agent_files import steers
from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.compiled_code import suspicions_of_compiled
from services.worker.verification.suspicions.known_names import RUNNERS
from services.worker.verification.suspicions.other_texts import suspicions_of_text
from services.worker.verification.suspicions.python_code import suspicions_of_code

_SHADOWING = RUNNERS | {"unittest"}
# Code of whole libraries takes a tree each; an agent's own is far shorter.
_MAX_PARSED_BYTES = 4 * 1024 * 1024
_MAX_TEXT_BYTES = 256 * 1024
_MAX_PACKED_FILES = 200
_MAX_LINKS = 10
_SUFFIXES = (".py", ".pyw")
_STARTS_PYTHON = re.compile(rb"#![^\n]{0,200}python")
_SITES = frozenset({"site-packages", "dist-packages"})
_OF_PYTEST = re.compile(rb"^\s*\[tool\.pytest\b", re.MULTILINE)
_IMPORTED = re.compile(rb"^\s*(?:import|from)\s+([\w., ]+)", re.MULTILINE)
_NAME = re.compile(rb"\w+")


@dataclass(frozen=True, slots=True)
class _Code:
    """Code of Python, as `name` in a message; `path` is that of its file."""

    name: str
    content: bytes

    @property
    def order(self) -> tuple[bool, int]:
        """Code of libraries, and then long code, comes last: there is a limit to what is read."""
        return not _SITES.isdisjoint(self.name.split("/")), len(self.content)


def suspicions_in(tar: bytes, folder: str, workspace: bytes = b"", tests: bytes = b"") -> tuple[str, ...]:
    """Files that may influence the tests and cannot be removed. They are reported beside the score.

    Files that are in `workspace`, a tar, as the agent left them, are the task's own. Where the working folder
    is on the path of imports, `tests` is a tar of the tests. A blocking call of seconds for many files.
    Raises FilesRefused as `read_files` does.
    """
    own = {file.name: file.content for file in _read(workspace, folder)}
    linked = _linked_code(tar, folder)
    imported = _imported_by(tests) & sys.stdlib_module_names
    found: set[str] = set()
    code: list[_Code] = []
    for file in _read(tar, folder):
        if own.get(file.name) == file.content and file.name not in linked:
            continue
        scripts = _scripts(own[file.name], file.name) if file.name in own else {}
        if scripts and scripts != _scripts(file.content, file.name):
            found.add(f"{file.name} {names.STEERS}")
        found |= {f"{file.name} {what}" for what in _of_file(file, imported)}
        code += _code_in(file, linked)
    return tuple(sorted(found | set(_of_code(code))))


def _read(tar: bytes, folder: str) -> Iterator[ReadFile]:
    return read_files(io.BytesIO(tar), folder, TarLimits()) if tar else iter(())


def _of_file(file: ReadFile, imported: frozenset[str] | set[str]) -> Iterator[str]:
    *folders, name = file.name.split("/")
    if steers(file.name) or (name == "pyproject.toml" and _OF_PYTEST.search(file.content)):
        yield names.STEERS
    if name == "entry_points.txt" and b"pytest11" in file.content:
        yield "brings a plugin of pytest"
    if _SHADOWING & {*folders, name.removesuffix(".py")}:
        yield "has the name of a runner of tests"
    first = file.name.split("/")[0].partition(".")[0]
    if first in imported and (not folders or name == "__init__.py") and _is_code(file):
        yield f"stands in the place of Python's own {first}, which the tests import"
    yield from suspicions_of_compiled(file.name, file.content)
    if not _is_code(file) and len(file.content) <= _MAX_TEXT_BYTES:
        yield from suspicions_of_text(file.name, file.content)


def _scripts(content: bytes, name: str) -> Mapping[str, object]:
    """Those by which npm tests a package; empty for any other file."""
    if PurePosixPath(name).name != "package.json":
        return {}
    try:
        scripts = json.loads(content)["scripts"]
        return {each: scripts.get(each) for each in ("pretest", "test", "posttest") if scripts["test"]}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _of_code(code: Sequence[_Code]) -> Iterator[str]:
    parsed = 0
    for each in sorted(code, key=lambda each: each.order):
        parsed += len(each.content)
        for what in suspicions_of_code(each.name, each.content, is_parsed=parsed <= _MAX_PARSED_BYTES):
            yield f"{each.name} {what}"


def _is_code(file: ReadFile) -> bool:
    is_named = file.name.endswith((*_SUFFIXES, ".so", ".pyd", ".pyc"))
    return is_named or bool(_STARTS_PYTHON.match(file.content))


def _code_in(file: ReadFile, linked: set[str]) -> Iterator[_Code]:
    """A file of code, and those of an archive, from which Python imports too."""
    is_python = file.name.endswith(_SUFFIXES) or file.name in linked
    if is_python or _STARTS_PYTHON.match(file.content):
        yield _Code(file.name, file.content)
    if not zipfile.is_zipfile(io.BytesIO(file.content[-_MAX_TEXT_BYTES:])):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            packed = [each for each in archive.infolist() if each.filename.endswith(_SUFFIXES)]
            for each in packed[:_MAX_PACKED_FILES]:
                if each.file_size <= _MAX_TEXT_BYTES:
                    yield _Code(f"{file.name}/{each.filename}", archive.read(each))
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError, NotImplementedError):
        # Python cannot import from it either.
        return


def _linked_code(tar: bytes, folder: str) -> set[str]:
    """Files that links give the name of code. Raises FilesRefused."""
    targets: dict[str, str] = {}
    if not tar:
        return set()
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r|") as opened:
            for member in opened:
                opened.members.clear()  # type: ignore[attr-defined]  # a stream needs none, and keeps all
                name = normpath(member.name)
                if member.islnk():
                    targets[name] = normpath(member.linkname)
                elif member.issym():
                    target = join("/", folder.strip("/"), str(PurePosixPath(name).parent), member.linkname)
                    targets[name] = normpath(target).removeprefix(f"{normpath(folder)}/")
    except (tarfile.TarError, ValueError, EOFError, LookupError, OverflowError, RecursionError) as error:
        raise FilesRefused(path=folder, problem=f"the tar is broken ({type(error).__name__}).") from error
    return {_followed(name, targets) for name in targets if name.endswith(_SUFFIXES)}


def _followed(name: str, targets: Mapping[str, str]) -> str:
    for _ in range(_MAX_LINKS):
        name = targets.get(name, name)
    return name


def _imported_by(tests: bytes) -> set[str]:
    """First parts of the modules that the tests import."""
    found: set[str] = set()
    for file in _read(tests, "the tests"):
        if file.name.endswith(_SUFFIXES):
            for match in _IMPORTED.finditer(file.content):
                found |= {each.decode("ascii", "replace") for each in _NAME.findall(match[1])}
    return found
