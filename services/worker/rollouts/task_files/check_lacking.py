"""Finds what a task's own solution lacks in its sandbox: then its score says nothing about the task."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import dirname

from packaging.utils import canonicalize_name

from proctor.values.rollout import RolloutTask
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.rollouts.errors import (
    SolutionLacksNetwork,
    SolutionLacksProgram,
    SolutionMayLack,
    SolutionNotPrepared,
)
from services.worker.rollouts.task_files.set_up import FAILED
from services.worker.verification.bundles import LeftFiles
from services.worker.verification.image_packages import named_package
from services.worker.verification.not_started import NO_NETWORK, NOT_INSTALLED, OTHER_VERSION
from services.worker.verification.printed import plain_lines
from services.worker.verification.verifier_result import VerifierResult

# Of shells, env, make, Python, programs by their paths, asserted ones, Go.
_PROGRAM = re.compile(
    r"(?:^|[\s:])(?P<shell>[\w.+-]+): command not found\s*$|\bsh: \d+: (?P<dash>[\w.+-]+): not found\s*$"
    r"|\benv: [‘'\"]?(?P<env>[\w.+-]+)[’'\"]?: No such file or directory"
    r"|^g?make(?:\[\d+\])?: (?P<make>[\w+-]+): No such file or directory"
    r"|FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<python>[A-Za-z][\w+-]*)'"
    r"|line \d+: (?P<path>/(?:opt|root|usr|s?bin)/[\w./+-]+): No such file or directory"
    r"|assert shutil\.which\(['\"](?P<which>[\w.+-]+)['\"]\)"
    r"|exec: \"(?P<go>[\w.+-]+)\": executable file not found"
)
# Of Python, R and node.
_MODULE = re.compile(
    r"No module named '?(?P<python>[A-Za-z]\w*)|there is no package called [‘'\"](?P<r>[\w.]+)"
    r"|Cannot find (?:module|package) '(?P<node>@?[a-z][\w./-]*)'"
)
# Of shells and programs, and of Python.
_PATH = re.compile(
    r"(/[^\s:'‘’\"]+)['’\"]?: No such file or directory|No such file or directory: ['\"](/[^'\"]+)"
)
_OF_EVERY_TASK = ("/", "/app", "/tmp")  # noqa: S108  # inside
_BRINGS = re.compile(r"\b(?:install|add|curl|wget|clone)\b")
_SHOWN, _SHOWN_CHARACTERS = 3, 200


@dataclass(frozen=True, slots=True)
class _Lacking:
    """A program, a module, or with an empty `name` a network."""

    name: str
    is_module: bool = False
    line: str = ""


def check_lacking(task: RolloutTask, result: VerifierResult, said: str, left: LeftFiles) -> None:
    """`said` is what the solution printed, and `result` is below 1. What the tests miss may be in files that
    the solution `left`: that is not lacking.

    A blocking call. Raises SolutionLacksProgram, SolutionLacksNetwork, SolutionMayLack and
    SolutionNotPrepared.
    """
    score = f"{result.score:g}"
    lacking = next(_lacking(said), None)
    if lacking is None and (told := [each for each in _lacking(result.log) if _is_likely(task, each)]):
        names = _names(left)
        lacking = next((each for each in told if each.name not in names), None)
    if lacking and not lacking.name:
        raise SolutionLacksNetwork(score=score, detail=result.detail, line=lacking.line)
    # An image has what it has: its task is not sound then.
    if task.image:
        return
    if lacking:
        reason = _reason(task, lacking)
        raise SolutionLacksProgram(score=score, detail=result.detail, name=lacking.name, reason=reason)
    if reason := "; ".join(_not_prepared(task, result)):
        raise SolutionNotPrepared(score=score, detail=result.detail, reason=reason)
    brings = [_BRINGS, *_missing_folders(f"{said}\n{result.log}")]
    if brought := [each for each in task.build.left_out if any(of.search(each) for of in brings)]:
        raise SolutionMayLack(score=score, detail=result.detail, commands=_shown(brought))


def _not_prepared(task: RolloutTask, result: VerifierResult) -> Iterator[str]:
    if files := task.build.unplaced:
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        yield f"it lacks {', '.join(files[:_SHOWN])}{more}"
    yield from [note for note in task.notes if note.startswith(FAILED)][:_SHOWN]
    replaced = (line.strip() for line in plain_lines(result.log) if OTHER_VERSION in line)
    yield from [line[:_SHOWN_CHARACTERS] for line in replaced][:_SHOWN]


def _missing_folders(text: str) -> list[re.Pattern[str]]:
    """What names a file that is not there, or its folder."""
    found = (_PATH.search(line) for line in plain_lines(text))
    paths = (each[1] or each[2] for each in found if each)
    folders = {folder for path in paths if (folder := dirname(path)) not in _OF_EVERY_TASK}
    return [re.compile(rf"(?<![\w/.-]){re.escape(each)}(?![\w.-])") for each in sorted(folders)]


def _is_likely(task: RolloutTask, lacking: _Lacking) -> bool:
    """Whether the Dockerfile may bring it: tests also say what they miss of the solution's work."""
    build = task.build
    is_named = any(lacking.name in each for each in (*build.images, *build.left_out, *task.packages))
    return is_named or any(map(_BRINGS.search, build.left_out))


def _names(left: LeftFiles) -> frozenset[str]:
    """Of its files without suffixes, and of their folders."""
    tars = (left.files, left.others) if left.others else (left.files,)
    files = (file for tar in tars for file in read_files(io.BytesIO(tar), "/", TarLimits()))
    return frozenset(part.partition(".")[0] for file in files for part in file.name.split("/"))


def _lacking(text: str) -> Iterator[_Lacking]:
    for line in plain_lines(text):
        if found := _MODULE.search(line):
            yield _Lacking(_name(found), is_module=True)
        elif found := _PROGRAM.search(line):
            yield _Lacking(_name(found))
        elif NO_NETWORK.search(line) or NOT_INSTALLED in line:
            yield _Lacking("", line=line.strip()[:_SHOWN_CHARACTERS])


def _name(found: re.Match[str]) -> str:
    return str(next(filter(None, found.groups())))


def _reason(task: RolloutTask, lacking: _Lacking) -> str:
    if lacking.is_module and canonicalize_name(lacking.name) in map(named_package, task.packages):
        return "PROCTOR_WORKER_VERIFIER_WHEELS of the worker names no wheel of it"
    left_out, images = task.build.left_out, ", ".join(task.build.images)
    naming = re.compile(rf"(?<![\w-]){re.escape(lacking.name)}(?![\w-])")
    if named := [each for each in left_out if naming.search(each)]:
        return f"of its Dockerfile this is not executed: {_shown(named)}"
    if not images:
        return "it is not installed there"
    brought = list(filter(_BRINGS.search, left_out))
    return f"its image is not used here ({images})" + (f", nor is {_shown(brought)}" if brought else "")


def _shown(commands: Sequence[str]) -> str:
    return "; ".join(f"RUN {each[:_SHOWN_CHARACTERS]}" for each in commands[:_SHOWN])
