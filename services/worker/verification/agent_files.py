"""The files that an agent left, made ready for tests: none is in the place of a test, or steers its runner.

They are taken out of the tar before it is unpacked, so no file, link or mode of the agent's stands in the way
of what follows.
"""

import io
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from types import MappingProxyType

from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.tar_files import PackedFile

# Files that steer a runner of tests, wherever they lie.
STEERING = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg"}
    | {"sitecustomize.py", "usercustomize.py"}
)
_CACHE = "__pycache__"
_SITES = frozenset({"site-packages", "dist-packages"})
_TESTS = frozenset({"test", "tests"})
_COMPILED = (".so", ".pyd", ".pyc")
_KEPT = {
    tarfile.REGTYPE: 0o600,
    tarfile.DIRTYPE: 0o700,
    tarfile.SYMTYPE: 0,
    tarfile.LNKTYPE: 0,
    tarfile.FIFOTYPE: 0o600,
}


def steers(name: str) -> bool:
    """Whether Python or pytest would execute or read the file without being asked to."""
    *folders, file = name.split("/")
    return file in STEERING or (file.endswith(".pth") and not _SITES.isdisjoint(folders))


@dataclass(frozen=True)
class TestPlaces:
    """Where the tests of a task lie among its files: all paths are relative to the working folder.

    `root` is the folder that tests are collected in, `script` the one of `scripts` that is executed. `files`
    are those of the task that belong to its tests.
    """

    root: str
    script: str
    scripts: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """Those between the script and the root, both ends included, the deepest first."""
        parents = PurePosixPath(self.script).parents
        return tuple(str(each) for each in parents if each.is_relative_to(self.root))

    def is_of_tests(self, name: str) -> bool:
        """Whether this file of the task's workspace belongs to its tests, whatever the agent made of it."""
        path = PurePosixPath(name)
        if steers(name) or self._is_package_of_tests(path):
            return True
        is_beside = any(path.is_relative_to(each) for each in self.folders if _is_named_tests(each))
        return path.suffix == ".py" and is_beside and not _is_named_test(path)

    def hides(self, name: str) -> bool:
        """Whether a file of the agent's would steer the tests, or would be taken for one of them."""
        path = PurePosixPath(name)
        places = [str(each) for each in (path, *path.parents)]
        is_steering = steers(name) or _CACHE in path.parts or self._is_package_of_tests(path)
        is_in_place = any(each in self.files for each in places)
        module = str(path.with_name(_module(path.name)))
        is_compiled = path.suffix in _COMPILED and module in self._modules
        is_package = any(each in self._modules for each in places)
        return is_steering or is_in_place or is_compiled or is_package or self._hides_helper(path)

    @cached_property
    def _modules(self) -> frozenset[str]:
        """Those that may be imported by name: scripts of other names than a test's are not."""
        return frozenset(
            file.removesuffix(".py")
            for file in self.files
            if file.endswith(".py") and (_is_named_test(PurePosixPath(file)) or file not in self.scripts)
        )

    def _hides_helper(self, path: PurePosixPath) -> bool:
        """Whether it lies in a folder of tests that is searched before the one with a helper of that name.

        Modules outside of these folders are found after the helpers: they are the solution's.
        """
        is_code = path.suffix in (".py", *_COMPILED)
        inner = (each for each in self._searched if path.is_relative_to(each) and _is_in_tests(each))
        return is_code and any(
            _module(path.relative_to(each).parts[0]) in self._imported_after(each) for each in inner
        )

    @cached_property
    def _searched(self) -> tuple[str, ...]:
        """Folders on the path of imports, in its order: those that are packages are not on it."""
        return tuple(
            each for each in self.folders if each == self.root or f"{each}/__init__.py" not in self.files
        )

    def _imported_after(self, folder: str) -> frozenset[str]:
        helpers = [each for each in map(PurePosixPath, self._modules) if not _is_named_test(each)]
        later = self._searched[self._searched.index(folder) + 1 :]
        return frozenset(
            each.relative_to(outer).parts[0]
            for outer in later
            for each in helpers
            if each.is_relative_to(outer)
        )

    def _is_package_of_tests(self, path: PurePosixPath) -> bool:
        """`__init__` of the root or of a folder of tests: pytest executes it, and no test asks for it."""
        folder = str(path.parent)
        is_tests = folder == self.root or _is_in_tests(folder)
        return _module(path.name) == "__init__" and is_tests and folder in self.folders


def _module(name: str) -> str:
    """The name that a file is imported by; that of an extension has a suffix of several parts."""
    return name.partition(".")[0] or name


def _is_named_tests(folder: str) -> bool:
    return PurePosixPath(folder).name in _TESTS


def _is_in_tests(folder: str) -> bool:
    return not _TESTS.isdisjoint(PurePosixPath(folder).parts)


def _is_named_test(path: PurePosixPath) -> bool:
    return path.stem.startswith("test_") or path.stem.endswith("_test")


def made_ready(
    tar: bytes,
    path: str,
    *,
    is_left_out: Callable[[str], bool] = lambda _: False,
    folders: Collection[str] = (),
    added: Mapping[str, PackedFile] = MappingProxyType({}),
) -> bytes:
    """The tar without what is left out, and with the files that are added.

    `folders` are there, as folders; the owner of all files may read and write them.

    Raises FilesRefused where the tar is broken.
    """
    needed = {str(each) for folder in folders for each in _with_parents(PurePosixPath(folder))}
    written = io.BytesIO()
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(tar), mode="r|") as old,
            # Names may have bytes outside UTF-8, which this form keeps.
            tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as new,
        ):
            for name in sorted(needed):
                new.addfile(_folder(name))
            for member in old:
                name = str(PurePosixPath(member.name))
                is_in_the_way = name in needed
                if name != "." and not is_in_the_way and not is_left_out(name):
                    _copy(old, member, name, new)
            for name, file in added.items():
                own = tarfile.TarInfo(name)
                own.size, own.mode = len(file.content), file.mode
                new.addfile(own, io.BytesIO(file.content))
    except (tarfile.TarError, ValueError, EOFError, LookupError, OverflowError, RecursionError) as error:
        raise FilesRefused(path=path, problem=f"the tar is broken ({type(error).__name__}).") from error
    return written.getvalue()


def _copy(old: tarfile.TarFile, member: tarfile.TarInfo, name: str, new: tarfile.TarFile) -> None:
    kind = tarfile.REGTYPE if member.isreg() else member.type
    if kind not in _KEPT:
        return
    copied = tarfile.TarInfo(name)
    copied.type, copied.linkname = kind, member.linkname
    copied.mode, copied.mtime = (member.mode & 0o7777) | _KEPT[kind], max(int(member.mtime), 0)
    content = old.extractfile(member) if kind == tarfile.REGTYPE else None
    copied.size = member.size if content else 0
    new.addfile(copied, content)


def _folder(name: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode = tarfile.DIRTYPE, 0o755
    return made


def _with_parents(path: PurePosixPath) -> Iterator[PurePosixPath]:
    return (each for each in (path, *path.parents) if str(each) != ".")
