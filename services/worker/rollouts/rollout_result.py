"""Result of a rollout: end of its agent, result of its verifier, changed files and trajectory."""

import difflib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from proctor.values.rollout import VerificationPlace
from proctor.values.usage import TokenUsage
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.rollouts.trajectory import Trajectory, cut
from services.worker.verification.verifier_result import VerifierResult

_MAX_DIFF_CHARACTERS, _MAX_LOG_CHARACTERS, _MAX_TRAJECTORY_CHARACTERS = 150_000, 100_000, 500_000
_MAX_NOTES_CHARACTERS = 50_000
# Where an agent leaves notes on its work, in the working folder; the first that it wrote counts.
_NOTES = ("artifacts/notes.md", "notes.md", "repo/notes.md")
# Steps in the middle of a trajectory that is too long lose all but this much.
_SHORT_STEP, _MAX_CUT_MESSAGE_CHARACTERS = 1000, 200
# A difference of larger files takes seconds and is not read.
_MAX_FILE_BYTES = 200_000
# Over all files, and of one file in both of its forms: a comparison may take their square, here a second.
_MAX_LINES, _MAX_COMPARED_LINES = 50_000, 10_000
_OPAQUE = ["\0"]
# Maximum bytes of the output of one test script; the log has more.
_MAX_OUTPUT_CHARACTERS = 4000


class AgentEnd(StrEnum):
    """How an agent ended. Whatever it was, what it left is judged."""

    SUBMITTED = "submitted"
    AGENT_STEP_LIMIT = "step_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105  # tokens of a model
    COST_LIMIT = "cost_limit"
    TIME_LIMIT = "time_limit"
    CONTEXT_FULL = "context_full"
    NO_COMMANDS = "no_commands"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class TaskStepRecord:
    """How a task step ended, and what its tests found."""

    name: str
    end: AgentEnd
    result: VerifierResult

    def as_json(self) -> Mapping[str, object]:
        return {
            "name": self.name,
            "ended": self.end.value,
            "score": self.result.score,
            "detail": self.result.detail,
            "rewards": dict(self.result.rewards),
        }


@dataclass(frozen=True, slots=True)
class RolloutResult:
    end: AgentEnd
    result: VerifierResult
    trajectory: Trajectory
    diff: str
    seconds: float
    budget: Mapping[str, object] = field(default_factory=dict)
    artifacts: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[TaskStepRecord, ...] = ()
    # What of the task's folder has no effect, or failed, in sentences.
    notes: tuple[str, ...] = ()
    # The file of notes that the agent wrote, in the working folder; empty for none.
    agent_notes: str = ""
    verification: VerificationPlace = VerificationPlace.FRESH
    # The usage of executions that ended without an outcome.
    earlier_usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def usage(self) -> TokenUsage:
        """The tokens of all executions: no other outcome counts those of earlier ones."""
        return self.trajectory.usage.plus(self.earlier_usage)

    @property
    def record_json(self) -> str:
        """The artifacts as JSON object text, cut to what fits into a message."""
        result = self.result
        record = {
            "ended": self.end.value,
            "budget": dict(self.budget),
            "score": result.score,
            "detail": result.detail,
            "verification": self.verification.value,
            "rubrics": {
                each.rubric_id: _rubric(result, number) for number, each in enumerate(result.rubrics)
            },
            "test_results": {
                each.path: {"success": each.is_passed, "output": cut(each.output, _MAX_OUTPUT_CHARACTERS)}
                for each in result.scripts
            },
            "rewards": dict(result.rewards),
            "tests": asdict(result.ran),
            "suspicions": list(result.suspicions),
            "notes": list(self.notes),
            "agent_notes": cut(self.agent_notes, _MAX_NOTES_CHARACTERS),
            "verifier_log": cut(result.log, _MAX_LOG_CHARACTERS),
            "diff": cut(self.diff, _MAX_DIFF_CHARACTERS),
            "trajectory": _short(self.trajectory.as_json()),
            **({"steps": [step.as_json() for step in self.steps]} if self.steps else {}),
            **self.artifacts,
        }
        return json.dumps(record, ensure_ascii=False)


def _rubric(result: VerifierResult, number: int) -> Mapping[str, object]:
    rubric = result.rubrics[number]
    return {
        "criterion": rubric.criterion,
        "weight": rubric.weight,
        "score": rubric.score,
        "max_score": 1.0,
        "weighted_score": rubric.weight * (rubric.score or 0.0),
        "test_count": rubric.scripts,
        "tests_passed": rubric.passed,
    }


def _short(trajectory: Mapping[str, object]) -> Mapping[str, object]:
    """A trajectory without the texts of the steps in its middle, where it is too long for a message."""
    steps = trajectory["steps"]
    assert isinstance(steps, list)
    left = _json_length(trajectory) - _MAX_TRAJECTORY_CHARACTERS
    kept = list(steps)
    middle = len(steps) // 2
    # Each step is cut once at most: one may stay long, and the whole still ends.
    for number in sorted(range(len(steps)), key=lambda number: abs(number - middle)):
        if left <= 0:
            break
        length = _json_length(steps[number])
        if length > _SHORT_STEP:
            kept[number] = _without_texts(steps[number])
            left -= length - _json_length(kept[number])
    return {**trajectory, "steps": kept}


def _without_texts(step: Mapping[str, object]) -> Mapping[str, object]:
    rest = {key: value for key, value in step.items() if key not in ("observation", "tool_calls")}
    return {**rest, "message": cut(str(step["message"]), _MAX_CUT_MESSAGE_CHARACTERS)}


def _json_length(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def diff_of(before: bytes, after: bytes, folder: str) -> str:
    """A unified diff of two tar files; a file that is not text, or is too long, is named only.

    A thread cannot be cancelled, so the diff has bounds of its own. Its last line says what they cut off.
    """
    old, new = _texts(before, folder), _texts(after, folder)
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    parts: list[str] = []
    lines_left, left_out = _MAX_LINES, 0
    for name in changed:
        was, now = _lines(old.get(name)), _lines(new.get(name))
        lines = len(was or ()) + len(now or ())
        is_slow = was is not None and now is not None and lines > _MAX_COMPARED_LINES
        if is_slow or _OPAQUE in (was, now):
            parts.append(f"Files a/{name} and b/{name} differ\n")
        elif lines > lines_left:
            left_out += 1
        else:
            lines_left -= lines
            parts.extend(_changes(name, was, now))
    if left_out:
        parts.append(f"Files that differ too, and are left out of {_MAX_LINES:,} lines: {left_out}\n")
    return "".join(parts)


def notes_of(before: bytes, after: bytes, folder: str) -> str:
    """The notes that the agent wrote; empty where it wrote none."""
    own, left = _texts(before, folder), _texts(after, folder)
    written = (left[name] for name in _NOTES if name in left and left[name] != own.get(name))
    return next(written, b"").decode("utf-8", "replace")


def _texts(tar: bytes, folder: str) -> dict[str, bytes]:
    files = read_files(io.BytesIO(tar), folder, TarLimits())
    return {file.name: file.content for file in files if "__pycache__" not in file.name}


def _changes(name: str, old: list[str] | None, new: list[str] | None) -> Iterator[str]:
    named = "/dev/null" if old is None else f"a/{name}"
    renamed = "/dev/null" if new is None else f"b/{name}"
    for line in difflib.unified_diff(old or [], new or [], named, renamed):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(content: bytes | None) -> list[str] | None:
    """None for a file that is not there, _OPAQUE for one that is not text, or is too long."""
    if content is None:
        return None
    if len(content) > _MAX_FILE_BYTES or b"\0" in content:
        return _OPAQUE
    try:
        return content.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return _OPAQUE
