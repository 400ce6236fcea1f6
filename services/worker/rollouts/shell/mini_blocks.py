"""The protocol of mini-swe-agent 2.4 for models without tools: one command in each answer, in a block.

The marks of commands and of outputs, the lengths, the end and the number of errors in a row are those of
mini-swe-agent; the sentences are Proctor's own.
"""

import re
from collections.abc import Sequence

from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.sample import ChatMessage
from services.common.sandboxes.sandbox import CommandResult, Ended
from services.worker.rollouts.shell.answer_form import LENGTH, ShellAnswer, block_call
from services.worker.rollouts.shell.shell_protocol import SUBMIT

_MARK = "mswea_bash_command"
_COMMAND = re.compile(rf"```{_MARK}\s*\n(.*?)\n```", re.DOTALL)
_MAX_OUTPUT_CHARACTERS = 10_000
_PART_CHARACTERS = _MAX_OUTPUT_CHARACTERS // 2
# The exit code of a command that was ended.
_ENDED = -1
_FORM = f"""```{_MARK}
your_command_here
```"""
_SYSTEM = f"""You work on tasks at a computer, through bash.

Every answer has two parts: a THOUGHT, in which you reason about the next step, and exactly one bash code
block with exactly one command. Commands that belong together may be joined by && or ||. An answer looks
like this:

<format_example>
THOUGHT: your reasoning.

{_FORM}
</format_example>

An answer in another form is rejected.
"""
_TASK = f"""Solve this task: {{instruction}}

You may execute commands and change files as you need. Work step by step:

1. Read the files that matter.
2. Where something is to be mended, reproduce the fault with a script.
3. Change the files.
4. Run the script again, and try edge cases.
5. Submit your work by this command: `echo {SUBMIT}`. It must stand alone, and nothing can be done after it.

Rules:

- One answer, one command, in one block that begins with ```{_MARK}.
- Each command runs in a new subshell in {{cwd}}. To work in another folder or with a variable, begin the
  command so: `VARIABLE=value cd /a/folder && ...`.
- No command is answered when it asks something, and there is no network.

Files are written by commands such as `cat <<'EOF' > new.py`, changed by `sed -i 's/old/new/' file.py`, and
read in parts by `nl -ba file.py | sed -n '10,20p'`.
"""
_ERROR = f"""The form of your answer is wrong:

<error>
Expected exactly 1 action, found {{found}}.
</error>

Write exactly one command, in one block:

{_FORM}

If the task is done, submit it as the first message says."""
_CUT_OFF = """Your answer reached its length limit before it held a whole command. Think and write less: one
command, in one block."""
_TOO_LONG = """<warning>
The output is too long to be shown whole. Ask for less, by head, tail, sed or a narrower pattern, or write it
to a file and search there.
</warning>"""


class MiniBlocks:
    tools: Sequence[Json] = ()

    def opening(self, instruction: str, cwd: str) -> tuple[ChatMessage, ...]:
        task = _TASK.replace("{cwd}", cwd).replace("{instruction}", instruction)
        return ChatMessage("system", _SYSTEM), ChatMessage("user", task)

    def read(self, answer: Answer) -> ShellAnswer:
        commands = [found.strip() for found in _COMMAND.findall(answer.text)]
        turn = ChatMessage("assistant", answer.text)
        if len(commands) == 1:
            return ShellAnswer(turn, (block_call(commands[0]),))
        is_cut_off = answer.finish_reason == LENGTH
        return ShellAnswer(turn, correction=_CUT_OFF if is_cut_off else _ERROR.format(found=len(commands)))

    def observation(self, result: CommandResult, seconds: float) -> str:
        code, lines = result.exit_code, []
        if result.ended is not Ended.EXITED:
            code = _ENDED
            lines.append(f"<exception>{_cause(result.ended, seconds)}</exception>")
        lines.append(f"<returncode>{code}</returncode>")
        return "\n".join([*lines, _shown(result)])


def _shown(result: CommandResult) -> str:
    text = result.text
    left_out = max(result.total_bytes - len(result.head) - len(result.tail), 0)
    if not left_out and len(text) < _MAX_OUTPUT_CHARACTERS:
        return f"<output>\n{text}</output>"
    elided = len(text) + left_out - _MAX_OUTPUT_CHARACTERS
    return (
        f"{_TOO_LONG}<output_head>\n{text[:_PART_CHARACTERS]}\n</output_head>\n"
        f"<elided_chars>\n{elided} characters elided\n</elided_chars>\n"
        f"<output_tail>\n{text[-_PART_CHARACTERS:]}\n</output_tail>"
    )


def _cause(ended: Ended, seconds: float) -> str:
    match ended:
        case Ended.TIMED_OUT:
            return f"The command timed out after {seconds:g} seconds, and every process was ended."
        case Ended.OUT_OF_MEMORY:
            return "The command was ended: there is no more memory."
        case _:
            return "The command was ended: there may be no more files."
