"""How a model says its commands: by calls of a tool, or in fenced blocks where its provider takes no tools.

After mini-swe-agent: each command in a new shell, and a history that only grows.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.sample import ChatMessage
from services.worker.engines.tool_calls import ToolCall, answered_turn, called_tools
from services.worker.rollouts.shell.shell_protocol import SUBMIT, observation
from services.worker.rollouts.trajectory import TOOL

LENGTH = "length"
_FENCED = re.compile(r"^```(?:bash|sh|shell)[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = "command"
_SCHEMA: Json = {
    "type": "object",
    "properties": {_COMMAND: {"type": "string", "description": "What `bash -c` executes."}},
    "required": [_COMMAND],
}
_FUNCTION: Json = {
    "name": TOOL,
    "description": "Executes a command in the sandbox; returns its exit code and its output.",
    "parameters": _SCHEMA,
}
_RULES = """- The command runs by `bash -c` in {cwd}. Each starts a new shell: files last, variables do not.
- You get its exit code and its output. There is no network, and questions are not answered."""
_BY_TOOL = f"""You solve a task in a Linux sandbox by shell commands.

Each of your answers holds a short thought and calls the tool {TOOL} with a command.

{_RULES}
- When the task is done, call {TOOL} with this command, alone: echo {SUBMIT}
"""
_BY_BLOCK = f"""You solve a task in a Linux sandbox by shell commands.

Each of your answers holds a short thought and exactly one command in one fenced block:

```bash
ls -la
```

{_RULES}
- When the task is done, answer with this command, alone:

```bash
echo {SUBMIT}
```
"""
_NO_BLOCK = f"""Your answer held {{found}} fenced blocks of bash. Write exactly one:

```bash
your command
```

If the task is done, its command is: echo {SUBMIT}"""
# The second way is for servers that drop tools without a word.
_NO_CALL = f"""Your answer called no tool. Call {TOOL} with your command. If you cannot, write exactly one:

```bash
your command
```

If the task is done, its command is: echo {SUBMIT}"""
_CUT_OFF = (
    "Your answer was cut off at its length limit before it held a command. Write less, and one command."
)


@dataclass(frozen=True, slots=True)
class ShellCall:
    """A command of an answer, or a `problem` instead. `call_id` is empty for a fenced block."""

    command: str
    call_id: str = ""
    tool: str = TOOL
    arguments: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ShellAnswer:
    """An answer as the turn of the history, and its commands; `correction` is the reply where it has none."""

    turn: ChatMessage
    calls: tuple[ShellCall, ...] = ()
    correction: str = ""


class FencedBlocks:
    """Exactly one block in each answer."""

    tools: Sequence[Json] = ()
    observation = staticmethod(observation)

    def opening(self, instruction: str, cwd: str) -> tuple[ChatMessage, ...]:
        return _opening(_BY_BLOCK, instruction, cwd)

    def read(self, answer: Answer) -> ShellAnswer:
        commands = commands_in(answer.text)
        turn = ChatMessage("assistant", answer.text)
        if len(commands) == 1:
            return ShellAnswer(turn, (block_call(commands[0]),))
        is_cut_off = answer.finish_reason == LENGTH
        return ShellAnswer(
            turn, correction=_CUT_OFF if is_cut_off else _NO_BLOCK.format(found=len(commands) or "no")
        )


class ToolCalls:
    """Any number of calls in an answer, which are executed in their order; one block counts as a call."""

    tools: Sequence[Json] = ({"type": "function", "function": _FUNCTION},)
    observation = staticmethod(observation)

    def opening(self, instruction: str, cwd: str) -> tuple[ChatMessage, ...]:
        return _opening(_BY_TOOL, instruction, cwd)

    def read(self, answer: Answer) -> ShellAnswer:
        is_cut_off = answer.finish_reason == LENGTH
        if called := called_tools(answer):
            calls = tuple(_call(each, is_cut_off=is_cut_off) for each in called)
            return ShellAnswer(answered_turn(answer), calls)
        commands = commands_in(answer.text)
        turn = ChatMessage("assistant", answer.text)
        if len(commands) == 1:
            return ShellAnswer(turn, (block_call(commands[0]),))
        return ShellAnswer(turn, correction=_CUT_OFF if is_cut_off else _NO_CALL)


def commands_in(answer: str) -> list[str]:
    return [found.strip() for found in _FENCED.findall(answer) if found.strip()]


def _opening(system: str, instruction: str, cwd: str) -> tuple[ChatMessage, ...]:
    return ChatMessage("system", system.replace("{cwd}", cwd)), ChatMessage("user", instruction)


def block_call(command: str) -> ShellCall:
    return ShellCall(command, arguments=json.dumps({_COMMAND: command}, ensure_ascii=False))


def _call(called: ToolCall, *, is_cut_off: bool) -> ShellCall:
    command = called.arguments_object.get(_COMMAND)
    problem = ""
    if called.name != TOOL:
        problem = f"There is no such tool. Call {TOOL} with a {_COMMAND}."
    elif not isinstance(command, str) or not command.strip():
        needed = f"The arguments of {TOOL} must be a JSON object with the text {_COMMAND}."
        problem = _CUT_OFF if is_cut_off else needed
    text = command if isinstance(command, str) else ""
    return ShellCall(text, called.call_id, called.name, called.arguments, problem)
