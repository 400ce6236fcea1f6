"""A model that works in a shell: the lines `DO command` of its task, one in each answer, then the end.

It calls the tool where it is given one, as its provider writes calls, and else writes a fenced block, or the
JSON that types the command into a terminal, as its agent asks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

_STEP = re.compile(r"^DO (.+)$", re.MULTILINE)
_SHELL = "You solve a task in a Linux sandbox"
_BLOCK = "exactly one command in one fenced block"
_MINI, _TERMINUS = "mswea_bash_command", '"keystrokes"'
_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True, slots=True)
class ShellStep:
    """The number of an answer, from 1 on, and its command."""

    number: int
    command: str

    @property
    def text(self) -> str:
        return f"Step {self.number}."

    @property
    def block(self) -> str:
        return f"{self.text}\n\n```bash\n{self.command}\n```\n"

    @property
    def mini_block(self) -> str:
        return f"THOUGHT: {self.text}\n\n```{_MINI}\n{self.command}\n```\n"

    @property
    def typed(self) -> str:
        """The end is said twice, since it must be confirmed."""
        is_done = self.command == _END
        commands = [] if is_done else [{"keystrokes": f"{self.command}\n", "duration": 0.3}]
        fields = {"analysis": self.text, "plan": self.command, "commands": commands, "task_complete": is_done}
        return orjson.dumps(fields).decode()

    @property
    def call_id(self) -> str:
        return f"call_{self.number}"

    @property
    def arguments(self) -> dict[str, str]:
        return {"command": self.command}


def shell_step(system: str, task: str, answers: int) -> ShellStep | None:
    """The answer after so many; None for a chat that is not a rollout."""
    return _step(task, answers) if _SHELL in system else None


def _step(task: str, answers: int) -> ShellStep:
    steps = _STEP.findall(task)
    return ShellStep(answers + 1, steps[answers] if answers < len(steps) else _END)


def shell_message(messages: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any] | None:
    """The answer of a server behind the OpenAI protocol; None for a chat that is not a rollout."""
    done = sum(message.get("role") == "assistant" for message in messages)
    if messages and _TERMINUS in messages[0]["content"]:
        return {"role": "assistant", "content": _step(messages[0]["content"], done).typed}
    if len(messages) < 2:
        return None
    if _MINI in messages[0]["content"]:
        return {"role": "assistant", "content": _step(messages[1]["content"], done).mini_block}
    step = shell_step(messages[0]["content"], messages[1]["content"], done)
    if step is None:
        return None
    if not tools:
        assert _BLOCK in messages[0]["content"]
        return {"role": "assistant", "content": step.block}
    function = {"name": "bash", "arguments": orjson.dumps(step.arguments).decode()}
    call = {"id": step.call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": step.text, "tool_calls": [call]}
