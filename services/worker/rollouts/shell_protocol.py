"""How a model works in a sandbox: its instructions, what of its answer is a command, what it gets back.

After mini-swe-agent: one command in an answer, each in a new shell, and a history that only grows. A fenced
block instead of a tool call, so that every engine can be asked.
"""

import re

from proctor.values.sample import ChatMessage
from services.worker.rollouts.transcript import cut
from services.worker.sandboxes.sandbox import CommandResult, Ended

SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
# Programs that would wait for a key, or draw on a terminal.
ENVIRONMENT = {
    "PAGER": "cat",
    "MANPAGER": "cat",
    "LESS": "-R",
    "PIP_PROGRESS_BAR": "off",
    "TQDM_DISABLE": "1",
}
# As in mini-swe-agent: more fills the context with what is rarely read.
_MAX_OUTPUT_LENGTH = 10_000
_FENCED = re.compile(r"^```(?:bash|sh|shell)[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SYSTEM = f"""You solve a task in a Linux sandbox by shell commands.

Each of your answers holds a short thought and exactly one command in one fenced block:

```bash
ls -la
```

- The command runs by `bash -c` in {{cwd}}. Each starts a new shell: `cd` and variables do not last, files do.
- You get its exit code and its output. There is no network, and questions are not answered.
- When the task is done, answer with this command, alone:

```bash
echo {SUBMIT}
```
"""
_NO_COMMAND = """Your answer held {found} fenced blocks of bash. Write exactly one:

```bash
your command
```

If the task is done, its command is: echo {submit}"""
_CUT_OFF = (
    "Your answer was cut off at its length limit before it held a command. Write less, and one command."
)


def opening(instruction: str, cwd: str) -> tuple[ChatMessage, ChatMessage]:
    return ChatMessage("system", _SYSTEM.replace("{cwd}", cwd)), ChatMessage("user", instruction)


def commands_in(answer: str) -> list[str]:
    return [found.strip() for found in _FENCED.findall(answer) if found.strip()]


def correction(found: int, *, is_cut_off: bool) -> str:
    return _CUT_OFF if is_cut_off else _NO_COMMAND.format(found=found or "no", submit=SUBMIT)


def is_submission(result: CommandResult) -> bool:
    first, *_ = result.text.lstrip().splitlines() or [""]
    return result.is_success and first.strip() == SUBMIT


def observation(result: CommandResult, seconds: float) -> str:
    output = cut(result.text, _MAX_OUTPUT_LENGTH)
    match result.ended:
        case Ended.TIMED_OUT:
            ended = f"The command was ended after {seconds:g} s, with every process in the sandbox."
        case Ended.OUT_OF_MEMORY:
            ended = "The command was ended: the sandbox has no more memory."
        case Ended.OUT_OF_DISK:
            ended = "The command was ended: the sandbox may have no more files."
        case _:
            ended = f"Exit code: {result.exit_code}"
    return f"{ended}\nOutput:\n{output}" if output.strip() else f"{ended}\nNo output."
