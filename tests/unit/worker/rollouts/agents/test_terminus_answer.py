"""The JSON protocol of Terminus 2: what is executed, what is put up with, and what is refused."""

import json
from typing import Any

import pytest

from services.worker.rollouts.terminus.answer import Keystrokes, read_answer

LS: dict[str, Any] = {"keystrokes": "ls\n", "duration": 0.1}


def answer(**changes: Any) -> dict[str, Any]:
    return {"analysis": "a", "plan": "p", "commands": [LS], **changes}


def test_keystrokes_are_read_with_their_waits() -> None:
    read = read_answer(json.dumps(answer(commands=[LS, {"keystrokes": "C-c", "duration": 500}])))
    assert read.commands == (Keystrokes("ls\n", 0.1), Keystrokes("C-c", 60.0))
    assert (read.is_complete, read.error, read.warnings) == (False, "", ())


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (f"I look.\n{json.dumps(answer())}", "text before"),
        (f"```json\n{json.dumps(answer())}\n```", "text after"),
        (json.dumps(answer())[:-1], "closing braces"),
        (json.dumps(answer(commands=[{"keystrokes": "ls\n"}])), "no duration"),
        (json.dumps(answer(commands=[{**LS, "duration": "soon"}])), "no duration"),
        (json.dumps(answer(commands=[{**LS, "timeout": 5}])), "unknown fields: timeout"),
        (json.dumps(answer(commands=[{**LS, "keystrokes": "ls"}, LS])), "end with a newline"),
    ],
)
def test_small_faults_are_warnings(text: str, warning: str) -> None:
    read = read_answer(text)
    assert [each for each in read.warnings if warning in each], read
    assert [command.keys.strip() for command in read.commands[:1]] == ["ls"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON object"),
        ("I am done.", "no JSON object"),
        ('{"analysis": "a", "plan": }', "not valid"),
        ('{"analysis": ' + "[" * 100_000 + "}", "not valid"),
        ('{"analysis": "a", "plan": "p"}', "missing: commands"),
        (json.dumps(answer(commands="ls")), "must be an array"),
        (json.dumps(answer(commands=["ls"])), "Command 1 must be an object"),
        (json.dumps(answer(commands=[LS, {"keystrokes": 7}])), "Command 2 must be an object"),
    ],
)
def test_what_cannot_be_executed_is_an_error(text: str, problem: str) -> None:
    read = read_answer(text)
    assert problem in read.error
    assert read.commands == ()


@pytest.mark.parametrize(
    ("said", "is_complete"), [(True, True), ("true", True), ("no", False), (None, False), (False, False)]
)
def test_the_end_is_said_by_a_boolean_or_its_word(said: object, *, is_complete: bool) -> None:
    assert read_answer(json.dumps(answer(task_complete=said))).is_complete is is_complete


def test_broken_commands_do_not_undo_the_end() -> None:
    read = read_answer(json.dumps(answer(task_complete=True, commands=[{}])))
    assert (read.is_complete, read.commands, read.error) == (True, (), "")
    assert "Command 1" in read.warnings[0]


@pytest.mark.parametrize(("given", "seconds"), [(-1, 0.0), (10**400, 60.0), (1e400, 60.0)])
def test_waits_are_bounded(given: float, seconds: float) -> None:
    [command] = read_answer(json.dumps(answer(commands=[{**LS, "duration": given}]))).commands
    assert command.seconds == seconds


def test_braces_in_texts_are_text() -> None:
    read = read_answer(
        json.dumps(answer(analysis='a } and a { and "', commands=[{**LS, "keystrokes": "}\n"}]))
    )
    assert (read.error, read.warnings, read.commands[0].keys) == ("", (), "}\n")
