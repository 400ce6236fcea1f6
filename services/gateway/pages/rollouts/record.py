"""The record of a rollout as its page reads it: trajectory, rubrics, changed files, suspicions.

A worker writes it, but its texts come from a model and from a task. What is not of the expected form is left
out.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

_TOO_LARGE = 1e15
_FAILED = re.compile(r"Exit code: (?!0\b)|The command was ended")


@dataclass(frozen=True, slots=True)
class AgentAction:
    """A command of the agent, and what it printed, which begins with its exit code for the shell agents."""

    command: str
    output: str

    @property
    def is_failed(self) -> bool:
        """Whether it is known to have failed."""
        return bool(_FAILED.match(self.output))


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the trajectory; `source` is "system", "user", "agent" or "unknown".

    Tokens are None where no model was asked. `elapsed`: the seconds since the first step that has a time;
    `took`: those since the one before it.
    """

    number: int
    source: str
    at: datetime | None
    message: str
    actions: Sequence[AgentAction]
    prompt_tokens: int | None
    completion_tokens: int | None
    elapsed: float | None = None
    took: float | None = None

    @property
    def is_failed(self) -> bool:
        """Whether a command of it is known to have failed."""
        return any(action.is_failed for action in self.actions)

    @property
    def characters(self) -> int:
        return len(self.message) + sum(len(each.command) + len(each.output) for each in self.actions)


@dataclass(frozen=True, slots=True)
class RubricRow:
    """A part of the score; `score` is None where it has no tests."""

    rubric_id: str
    criterion: str
    weight: float
    score: float | None
    tests: int
    passed: int


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`kind` is "file", "hunk", "added", "removed" or "same"."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """The record that a worker made of a rollout; empty without one.

    `artifacts` are the names of what is stored of its `execution`: the record has only a part of long texts.
    """

    score: float | None = None
    ended: str = ""
    detail: str = ""
    rubrics: Sequence[RubricRow] = ()
    rewards: Sequence[tuple[str, float]] = ()
    suspicions: Sequence[str] = ()
    steps: Sequence[Step] = ()
    diff: Sequence[DiffLine] = ()
    log: Sequence[str] = ()
    execution: str = ""
    artifacts: Collection[str] = ()

    @property
    def failed_steps(self) -> Sequence[int]:
        """The numbers of the steps with a command that failed."""
        return [step.number for step in self.steps if step.is_failed]

    @property
    def commands(self) -> int:
        return sum(len(step.actions) for step in self.steps)


def record_of(body_json: str) -> RolloutRecord:
    """An empty record for a text that is none."""
    try:
        body = json.loads(body_json) if body_json else None
    except (ValueError, RecursionError):
        body = None
    known = _mapping(body)
    return RolloutRecord(
        score=_number(known.get("score")),
        ended=_text(known.get("ended")),
        detail=_text(known.get("detail")),
        rubrics=[_rubric(name, _mapping(value)) for name, value in _mapping(known.get("rubrics")).items()],
        rewards=[
            (name, value)
            for name, given in _mapping(known.get("rewards")).items()
            if (value := _number(given)) is not None
        ],
        suspicions=[each for each in _list(known.get("suspicions")) if isinstance(each, str)],
        steps=_steps(_list(_mapping(known.get("trajectory")).get("steps"))),
        diff=[DiffLine(_kind(line), line) for line in _text(known.get("diff")).splitlines()],
        log=_text(known.get("verifier_log")).splitlines(),
        execution=_text(known.get("execution")),
        artifacts=_mapping(known.get("artifacts")).keys(),
    )


def _rubric(name: str, known: Mapping[str, Any]) -> RubricRow:
    return RubricRow(
        rubric_id=name,
        criterion=_text(known.get("criterion")),
        weight=_number(known.get("weight")) or 0.0,
        score=_number(known.get("score")),
        tests=int(_number(known.get("test_count")) or 0),
        passed=int(_number(known.get("tests_passed")) or 0),
    )


def _steps(known: Sequence[Any]) -> Sequence[Step]:
    steps, timed = [], list[datetime]()
    for number, each in enumerate(known, 1):
        step = _step(number, _mapping(each))
        if at := step.at:
            timed.append(at)
            elapsed, took = ((at - other).total_seconds() for other in (timed[0], timed[-2:][0]))
            step = replace(step, elapsed=elapsed, took=took)
        steps.append(step)
    return steps


def _step(number: int, known: Mapping[str, Any]) -> Step:
    """Steps of ATIF: each call has an id, by which its result is found."""
    results = {
        _text(result.get("source_call_id")): _text(result.get("content"))
        for result in map(_mapping, _list(_mapping(known.get("observation")).get("results")))
    }
    metrics = _mapping(known.get("metrics"))
    source = _text(known.get("source"))
    actions = [_action(_mapping(call), results) for call in _list(known.get("tool_calls"))]
    return Step(
        number=number,
        source=source if source in {"system", "user", "agent"} else "unknown",
        at=_moment(known.get("timestamp")),
        message=_without_commands(_text(known.get("message")), actions),
        actions=actions,
        prompt_tokens=_whole(metrics.get("prompt_tokens")),
        completion_tokens=_whole(metrics.get("completion_tokens")),
    )


def _without_commands(message: str, actions: Sequence[AgentAction]) -> str:
    """The message without the fenced blocks whose commands are shown below it."""
    for action in actions:
        message = message.replace(f"```bash\n{action.command}\n```", "")
    return message.strip()


def _action(call: Mapping[str, Any], results: Mapping[str, str]) -> AgentAction:
    arguments = call.get("arguments")
    command = _text(_mapping(arguments).get("command"))
    if not command and arguments:
        command = f"{_text(call.get('function_name'))} {json.dumps(arguments, ensure_ascii=False)}"
    return AgentAction(command, results.get(_text(call.get("tool_call_id")), ""))


def _kind(line: str) -> str:
    if line.startswith(("--- ", "+++ ", "Files ")):
        return "file"
    return {"@": "hunk", "+": "added", "-": "removed"}.get(line[:1], "same")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < _TOO_LARGE else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _moment(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return at if at.tzinfo and 1 < at.year < 9999 else None
