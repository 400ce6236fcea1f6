"""Imports inside the sandbox: `lm_eval.tasks` is the folder of the suite, and `datasets` a stand-in.

A package that is not installed is missed when it is used, not when it is imported: a file of a task
imports for all of its phases at once.
"""

import ast
import builtins
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

TASKS = "lm_eval.tasks"


class AbsentPackage(Exception):
    """A package is needed that is not installed."""


class Absent:
    """Something of a package that is not installed: may be named, not used.

    The further arguments are those of a class that has it as its base.
    """

    def __init__(self, name: str, *_: object, **__: object) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(self._name)

    def __getitem__(self, _: object) -> "Absent":
        return self

    def __or__(self, _: object) -> "Absent":
        return self

    __ror__ = __or__

    def __call__(self, *_: object, **__: object) -> Any:
        raise AbsentPackage(self._name)

    def __iter__(self) -> Iterator[object]:
        raise AbsentPackage(self._name)


class TaskFiles(MetaPathFinder):
    """Finds the modules of `lm_eval.tasks` in the folder, before an installed package of that name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == "lm_eval":
            return None if is_installed(self, fullname) else _namespace(fullname, [])
        if fullname == TASKS:
            return _namespace(fullname, [str(self._folder)])
        if not fullname.startswith(f"{TASKS}."):
            return None
        place = self._folder.joinpath(*fullname.split(".")[2:])
        file = place / "__init__.py" if place.is_dir() else place.with_name(f"{place.name}.py")
        if file.is_file():
            return self.spec_of(fullname, file)
        return _namespace(fullname, [str(place)]) if place.is_dir() else None

    def spec_of(self, name: str, file: Path) -> ModuleSpec | None:
        places = [str(file.parent)] if file.name == "__init__.py" else None
        loader = LenientLoader(file)
        return importlib.util.spec_from_file_location(
            name, file, loader=loader, submodule_search_locations=places
        )

    def load(self, path: str) -> ModuleType:
        """The module of a file by its path in the folder."""
        parts = path.removesuffix(".py").split("/")
        name = ".".join([TASKS, *parts])
        if not any("." in part for part in parts):
            return importlib.import_module(name)
        spec = self.spec_of(name, self._folder / path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


class LenientLoader(Loader):
    """Executes a file of the task. Only imports outside of a `try` may be absent: the file handles others."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        del spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        tree = ast.parse(self._file.read_bytes(), str(self._file))
        tried = {
            name for node in ast.walk(tree) if isinstance(node, ast.Try) for name in _imported(node.body)
        }

        def import_leniently(name: str, *given: Any, **named: Any) -> Any:
            try:
                return builtins.__import__(name, *given, **named)
            except ModuleNotFoundError as error:
                missing = str(error.name or name)
                if name in tried or missing.startswith(TASKS):
                    raise
                return Absent(missing.partition(".")[0])

        module.__dict__["__builtins__"] = {**builtins.__dict__, "__import__": import_leniently}
        exec(compile(tree, str(self._file), "exec"), module.__dict__)  # noqa: S102  # the task's own code, in its sandbox


def _imported(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""


def is_installed(own: TaskFiles, name: str) -> bool:
    """Whether a package is there beside the files of the task."""
    others = (finder for finder in sys.meta_path if finder is not own)
    return any(finder.find_spec(name, None) for finder in others)


def _namespace(name: str, places: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = places
    return spec
