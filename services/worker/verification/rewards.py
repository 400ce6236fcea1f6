"""Reads the reward that tests wrote, and holds it against what they printed."""

import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from proctor.values.rollout import RanTests
from services.common.sandboxes.errors import FilesRefused, VerifierFailed
from services.common.sandboxes.ports import Sandbox
from services.common.sandboxes.sandbox import DEFAULT_PATH, Command, TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.verification.not_started import not_started
from services.worker.verification.pytest_results import (
    PytestResults,
    kept_results,
    listed_results,
    read_results,
    unended_sessions,
    without_kept,
)
from services.worker.verification.verifier_result import VerifierResult

LOGS = "/logs/verifier"
_LOG_LIMITS = TarLimits(total_bytes=16 * 1024**2, members=1000)
_JSON, _TEXT = "reward.json", "reward.txt"
REWARD_FILES = (f"{LOGS}/{_JSON}", f"{LOGS}/{_TEXT}")
# Written by the plugin of pytest of the option `--ctrf`.
_LISTED = "ctrf.json"
# Written by pytest's own `__main__`, whatever becomes of its output.
_KEPT = "pytest.log"
_LOG_SUFFIXES = (".txt", ".log", ".out", ".err")
_MAX_LOG_CHARACTERS = 100_000
# Tests that write both may round one of them.
_ROUNDED = 0.01
# Of shells and of Python: what lies in the place of the reward is not of the tests.
_NOT_WRITTEN = re.compile(
    r"(?:reward\.(?:txt|json)|/logs/verifier/?)['\"]?: (?:Permission denied|Read-only file system"
    r"|Is a directory|Not a directory|Operation not permitted|Too many levels of symbolic links)"
    r"|(?:Permission|IsADirectory|NotADirectory)Error: .*(?:reward\.(?:txt|json)|/logs/verifier)"
    r"|(?:cannot|can't) (?:create|open|overwrite) .*reward\.(?:txt|json)(?!.*No such file)"
)

_WRITTEN = 9
# It opens and closes each file four times, and says how many files it looked at.
_USES_OF_LOOK = 8
_SECONDS = 60.0
# A process that waits for the tests' 0 sees one. Names of processes are numbers; 1 is the sandbox's own.
_LOOK = f"""PATH={DEFAULT_PATH}
is_alone() {{
    for each in /proc/[0-9]*; do
        case "${{each#/proc/}}" in 1 | $$) ;; *) return 1 ;; esac
    done
}}
is_alone && echo 0 && exit 0
looked=0
cd "$1" || {{ echo 0; exit 0; }}
for name in reward.txt reward.json; do
    [ -f "$name" ] && [ ! -L "$name" ] || continue
    kept=$(cat "$name"; echo .) && echo 0 > "$name" && sleep 0.2 || exit {_WRITTEN}
    [ "$(cat "$name")" = 0 ] || exit {_WRITTEN}
    printf %s "${{kept%.}}" > "$name"
    looked=$((looked + 1))
done
echo $looked
"""


async def is_written_by_others(sandbox: Sandbox) -> bool:
    """Whether a reward changes after the tests, or nothing can look at it. Raises SandboxError."""
    look = Command(
        ("/bin/sh", "-c", _LOOK, "sh", LOGS), cwd="/", timeout_seconds=_SECONDS, watched=REWARD_FILES
    )
    looked = await sandbox.run(look)
    if not looked.is_success or looked.uses is None:
        return not looked.is_success
    # One that wrote in the moment before the look is gone by now.
    files, rest = divmod(looked.uses, _USES_OF_LOOK)
    return rest > 0 or looked.text.strip() != str(files)


async def read_reward(
    sandbox: Sandbox, log: str, solved: RanTests, suspicions: tuple[str, ...]
) -> VerifierResult:
    """reward.json before reward.txt; the exit code of the tests says nothing.

    Logs that the tests wrote beside the reward are a part of what they printed. A reward that other processes
    than the tests wrote counts for nothing, as far as that can be told. Raises VerifierFailed.
    """
    try:
        files = await _taken(sandbox)
    except FilesRefused as refused:
        # What the tests execute may remove, replace or fill the folder.
        raise without_result(str(refused).rstrip("."), log) from refused
    log += "".join(
        f"\n=== {name}\n{text[-_MAX_LOG_CHARACTERS:]}"
        for name, text in _logs(files)
        if name != _KEPT or text.strip()
    )
    rewards = _found(files, log)
    score = _score(rewards)
    if not 0.0 <= score <= 1.0:
        raise VerifierFailed(problem=f"the reward {score:g} is not from 0 to 1: let the tests divide it.")
    printed, listed = read_results(log), listed_results(files.get(_LISTED, b""))
    results = printed or listed or kept_results(files.get(_KEPT, b""))
    detail = ", ".join(f"{name} {value:g}" for name, value in rewards.items())
    said = (printed, listed) if printed or listed else (results,)
    contradictions = list(_contradictions(log, said)) if score == 1.0 else []
    if contradictions and _is_of_others(log, solved):
        score, detail = 0.0, f"a reward that others than the tests wrote counts for nothing ({detail})"
    return VerifierResult(
        score,
        detail,
        log,
        rewards=tuple(rewards.items()),
        suspicions=(*suspicions, *_differing(files, score), *contradictions, *_unended(files)),
        ran=results.ran if results else RanTests(),
    )


async def unended_session(sandbox: Sandbox) -> Iterator[str]:
    """A suspicion where pytest began and did not come to its end. Raises SandboxError."""
    try:
        return _unended(await _taken(sandbox))
    except FilesRefused:
        return iter(("the logs of the tests cannot be read",))


async def _taken(sandbox: Sandbox) -> Mapping[str, bytes]:
    """Raises SandboxError."""
    with io.BytesIO() as taken:
        await sandbox.get(LOGS, taken, _LOG_LIMITS)
        return {file.name: file.content for file in read_files(taken, LOGS, _LOG_LIMITS)}


def _unended(files: Mapping[str, bytes]) -> Iterator[str]:
    """What is tested may print results of its own, and end the tests."""
    if unended_sessions(files.get(_KEPT, b"")):
        yield "pytest was ended before its end"


def _logs(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    for name, content in files.items():
        if name.endswith(_LOG_SUFFIXES) and name != _TEXT:
            text = content.decode("utf-8", "replace")
            yield name, without_kept(text) if name == _KEPT else text


def without_result(problem: str, log: str) -> VerifierFailed:
    """The failure of tests without a result, with what they printed last."""
    if line := not_started(VerifierResult(0.0, "", log)):
        return VerifierFailed(problem=f"they could not start: {line}")
    tail = log.strip()[-300:]
    printed = f"the last they printed: {tail}" if tail else "they printed nothing."
    return VerifierFailed(problem=f"{problem}; {printed}")


def _differing(files: Mapping[str, bytes], score: float) -> Iterator[str]:
    """Tests that begin with a reward of 0 in the one file may write that of the other only."""
    if score and _JSON in files and _TEXT in files:
        text = _number(_TEXT, _decoded(files[_TEXT]) or "0")
        if abs(score - text) > _ROUNDED:
            yield f"reward.json says {score:g}, and reward.txt {text:g}"


def _contradictions(log: str, said: Sequence[PytestResults | None]) -> Iterator[str]:
    """Another process than the tests may have written a reward of 1: all of a sandbox have one user."""
    for results in said:
        if results and not results.is_passed:
            passed = f"{results.passed} of {results.total} tests that they printed passed"
            yield f"the reward is 1, but {passed}"
            break
    if found := _NOT_WRITTEN.search(log):
        yield f"the reward is 1, but the tests could not write theirs: {found[0][:200]}"


def _is_of_others(log: str, solved: RanTests) -> bool:
    """Tests may print failures that they expect, as the task's own solution shows where it was executed."""
    return bool(_NOT_WRITTEN.search(log)) or (solved.count > 0 and not solved.failed)


def _found(files: Mapping[str, bytes], log: str) -> dict[str, float]:
    if _JSON in files:
        return _rewards(files[_JSON])
    if _TEXT in files:
        return {"reward": _number(_TEXT, _decoded(files[_TEXT]))}
    raise without_result("they wrote no reward.json and no reward.txt", log)


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "replace").strip()


def _score(rewards: Mapping[str, float]) -> float:
    return rewards["reward"] if len(rewards) > 1 else next(iter(rewards.values()))


def _rewards(content: bytes) -> dict[str, float]:
    """A number, or an object of them. With several, `reward` is the score."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise VerifierFailed(problem="reward.json is not JSON.") from error
    values = value if isinstance(value, dict) else {"reward": value}
    if not values:
        raise VerifierFailed(problem="reward.json is empty.")
    if len(values) > 1 and "reward" not in values:
        names = ", ".join(map(str, values))
        problem = f"reward.json holds {names}, and none of them is named reward: let the tests name one so."
        raise VerifierFailed(problem=problem)
    if "reward" in values:
        # What tests say of it beside, such as an object of their checks, is no measure.
        values = {name: each for name, each in values.items() if name == "reward" or not _is_said(each)}
    return {str(name): _number(f"reward.json, {name}", each) for name, each in values.items()}


def _is_said(value: object) -> bool:
    return isinstance(value, str | list | dict) or value is None


def _number(place: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise VerifierFailed(problem=f"{place} holds {str(value)[:60]!r}, which is not a number.")
    return number
