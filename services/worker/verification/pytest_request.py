"""The request to run pytest: the collected files and the tests that judge them. Suspicions in both."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from proctor.values.rollout import DEFAULT_TESTS_FOLDER, RanTests
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import ReadFile, read_files
from services.worker.verification.agent_files import steers
from services.worker.verification.suspicions.compiled_code import suspicions_of_compiled
from services.worker.verification.suspicions.known_names import RUNNERS
from services.worker.verification.suspicions.python_code import names_reward, suspicions_of_code

_SHADOWING = RUNNERS | {"unittest"}
# Code of whole libraries takes a tree each; an agent's own is far shorter.
_MAX_PARSED_BYTES = 4 * 1024 * 1024
_MAX_TEXT_BYTES = 256 * 1024
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


def suspicions_in(tar: bytes, folder: str, workspace: bytes = b"") -> tuple[str, ...]:
    """Files that may influence the tests and cannot be removed. They are reported beside the score.

    Files that are in `workspace`, a tar, as the agent left them, are the task's own. A blocking call of
    seconds for many files. Raises FilesRefused as `read_files` does.
    """
    own = {(file.name, file.content) for file in _read(workspace, folder)}
    parsed = 0
    found: set[str] = set()
    for file in _read(tar, folder):
        if (file.name, file.content) in own:
            continue
        parsed += len(file.content) if file.name.endswith(".py") else 0
        found |= {f"{file.name} {what}" for what in _suspicions(file, is_parsed=parsed <= _MAX_PARSED_BYTES)}
    return tuple(sorted(found))


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


def _suspicions(file: ReadFile, *, is_parsed: bool) -> Iterator[str]:
    *folders, name = file.name.split("/")
    if steers(file.name):
        yield "steers a runner of tests"
    if name == "entry_points.txt" and b"pytest11" in file.content:
        yield "brings a plugin of pytest"
    if _SHADOWING & {*folders, name.removesuffix(".py")}:
        yield "has the name of a runner of tests"
    yield from suspicions_of_compiled(file.name, file.content)
    if name.endswith(".py"):
        yield from suspicions_of_code(file.name, file.content, is_parsed=is_parsed)
    elif len(file.content) <= _MAX_TEXT_BYTES and (what := names_reward(file.content)):
        yield what
