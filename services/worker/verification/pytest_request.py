"""The request to run pytest: the collected files and the tests that judge them. Suspicions in both."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from proctor.values.rollout import DEFAULT_TESTS_FOLDER
from services.worker.sandboxes.sandbox import TarLimits
from services.worker.sandboxes.tar_files import ReadFile, read_files
from services.worker.verification.agent_files import steers

_SHADOWING = frozenset({"pytest", "_pytest", "pluggy", "unittest"})
# Each repetition is bounded or ends with its line: the code is hostile, and a search holds the interpreter.
_IN_CODE = {
    "uses the runner of its tests": re.compile(
        r"(?m)^[ \t\f]*(import|from)[\s\\]{1,40}_?pytest\b|['\"]_?pytest['\"]"
    ),
    "looks into its callers": re.compile(r"\b(_getframe|f_back|get_objects|settrace|setprofile)\b"),
    "is equal to everything": re.compile(
        r"def __(eq|ne)__\([^)]{0,200}\)[^:]{0,200}:\s{0,200}return\s{1,200}(True|False)\b"
    ),
}


@dataclass(frozen=True, slots=True)
class PytestRequest:
    """`files` is a tar of what the agent left in its working folder, `tests` one of the tests.

    `expected_tests`: how many of them the task's own solution passes; 0 where that is not known. The files
    are unpacked in `folder` and the tests in `tests_folder`, which may lie in it; then `path` is the one of
    `scripts` that runs, and the helpers of the tests are those of `workspace`, a tar of the task's own files.
    `image` is the sandbox's.
    """

    files: bytes
    tests: bytes
    expected_tests: int = 0
    timeout_seconds: float = 600.0
    folder: str = "/app"
    tests_folder: str = DEFAULT_TESTS_FOLDER
    path: str = ""
    scripts: tuple[str, ...] = ()
    workspace: bytes = b""
    image: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """`is_passed`: every test passed, none was missing, and there was at least one. `detail` is one line."""

    is_passed: bool
    detail: str
    output: str = ""
    suspicions: tuple[str, ...] = ()


def suspicions_in(tar: bytes, folder: str) -> tuple[str, ...]:
    """Files that may influence the tests and cannot be removed. They are reported beside the score.

    A blocking call of seconds for many files. Raises FilesRefused as `read_files` does.
    """
    files = read_files(io.BytesIO(tar), folder, TarLimits())
    return tuple(sorted({f"{file.name} {what}" for file in files for what in _suspicions(file)}))


def _suspicions(file: ReadFile) -> Iterator[str]:
    *folders, name = file.name.split("/")
    if steers(file.name):
        yield "steers a runner of tests"
    if name == "entry_points.txt" and b"pytest11" in file.content:
        yield "brings a plugin of pytest"
    if _SHADOWING & {*folders, name.removesuffix(".py")}:
        yield "has the name of a runner of tests"
    if name.endswith(".py"):
        text = file.content.decode("utf-8", "replace")
        yield from (what for what, pattern in _IN_CODE.items() if pattern.search(text))
