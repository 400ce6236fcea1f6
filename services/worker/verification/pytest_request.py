"""The request to run pytest: the collected files and the tests that judge them."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from proctor.values.rollout import DEFAULT_TESTS_FOLDER, RanTests
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import ReadFile, read_files

_OF_TESTS = re.compile(
    r"python[\d.]*|py\.?test|pip[\d.]*|uvx?|(?:ba|da)?sh|env|cat|echo|test|node|npm|npx|java|go"
)


@dataclass(frozen=True, slots=True)
class PytestRequest:
    """`files` is a tar of what the agent left in its working folder, `tests` one of the tests.

    `solved_tests`: those that ran on the task's own solution, where they are known. The files are unpacked in
    `folder` and the tests in `tests_folder`, which may lie in it; then `path` is the one of `scripts` that
    runs, and the helpers of the tests are those of `workspace`, a tar of the task's own files. `image` is the
    sandbox's.
    """

    files: bytes
    tests: bytes
    solved_tests: RanTests = field(default_factory=RanTests)
    timeout_seconds: float = 600.0
    folder: str = "/app"
    tests_folder: str = DEFAULT_TESTS_FOLDER
    path: str = ""
    scripts: tuple[str, ...] = ()
    workspace: bytes = b""
    image: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """`is_passed`: every test passed, and there was at least one. `detail` is one line.

    `measured` are the numbers that tests recorded by pytest's fixture `record_property`, by their names.
    """

    is_passed: bool
    detail: str
    output: str = ""
    suspicions: tuple[str, ...] = ()
    ran: RanTests = field(default_factory=RanTests)
    measured: Mapping[str, float] = field(default_factory=dict)


def programs_in(tar: bytes, folder: str, path: str, workspace: bytes = b"") -> tuple[str, ...]:
    """Suspicions of programs that stand before the machine's own, by the variable PATH of the task.

    A virtual environment has links to Python in their place, and those of the task itself are not meant.
    """
    root = PurePosixPath(folder)
    searched = {str(PurePosixPath(each).relative_to(root)) for each in path.split(":") if _is_in(each, root)}
    if not searched:
        return ()
    own = {(file.name, file.content) for file in _read(workspace, folder)}
    return tuple(
        f"{file.name} stands in the place of a program that runs the tests"
        for file in _read(tar, folder)
        if str(PurePosixPath(file.name).parent) in searched and (file.name, file.content) not in own
        if _OF_TESTS.fullmatch(PurePosixPath(file.name).name)
    )


def _is_in(path: str, root: PurePosixPath) -> bool:
    return PurePosixPath(path).is_relative_to(root)


def _read(tar: bytes, folder: str) -> Iterator[ReadFile]:
    return read_files(io.BytesIO(tar), folder, TarLimits()) if tar else iter(())
