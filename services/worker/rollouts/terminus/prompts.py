"""The sentences of the terminus agent: they ask for the protocol of Terminus 2, in Proctor's own words."""

from collections.abc import Sequence

# Of the protocol: bytes of a screen or of new output that the model is shown.
_MAX_SHOWN_BYTES = 10_000
_TASK = """You solve a task in a Linux terminal, by keystrokes. You are given the task and the state of the
terminal. After each of your answers you are shown what became of the terminal.

Each answer is one JSON object:

{
  "analysis": "Your reading of the terminal: what is there, what is done, what is left to do.",
  "plan": "Your next keystrokes, and what you expect of each.",
  "commands": [
    {
      "keystrokes": "ls -la\\n",
      "duration": 0.1
    }
  ],
  "task_complete": false
}

- "analysis", "plan" and "commands" must be there. "task_complete" says whether the task is done: false
  without it.
- "keystrokes" are typed exactly as they are. A command runs only where they end with a newline (\\n). Keys
  have their names of tmux, alone in "keystrokes": C-c for Ctrl+C, C-d for Ctrl+D.
- "duration" is the number of seconds to wait before the next keystrokes, 1.0 without it: 0.1 for what is done
  at once, such as cd, ls or cat; 1.0 for compilers and searches; more for what is slow. Prefer short waits:
  you can wait on with {"keystrokes": "", "duration": 10.0}. No wait is longer than 60 seconds.
- "commands" may be empty, to wait without doing anything.
- The JSON must be valid: escape quotes and newlines in texts. Write nothing before or after it.
- There is no network.

Task:
"""
_STATE = "\n\nState of the terminal:\n"
_CONFIRM = """State of the terminal:
{state}

Do you want to end your work on the task? It is judged as it is then, and nothing can be mended. If so, write
"task_complete": true in your answer once more."""
_NOT_READ = """Nothing of your answer was executed, since it cannot be read:
{problems}

Write one JSON object as the first message describes it."""
_WARNED = """Your answer was executed with these warnings:
{problems}

{state}"""
_CUT_OFF = """Nothing of your answer was executed, since it reached its length limit. Ask for the same in
several shorter answers."""
ENDED = "The terminal had ended, so this is a new one.\n"


def opening(instruction: str, state: str) -> str:
    return f"{_TASK}{instruction}{_STATE}{shown(state)}"


def not_read(error: str, warnings: Sequence[str]) -> str:
    return _NOT_READ.format(problems=_listed([error, *warnings]))


def cut_off() -> str:
    return _CUT_OFF


def observation(state: str, warnings: Sequence[str]) -> str:
    text = shown(state)
    return _WARNED.format(problems=_listed(warnings), state=text) if warnings else text


def confirmation(state: str) -> str:
    return _CONFIRM.format(state=shown(state))


def shown(state: str) -> str:
    """Head and tail of what is too long, with the number of bytes left out between them."""
    encoded = state.encode("utf-8", "replace")
    if len(encoded) <= _MAX_SHOWN_BYTES:
        return state
    half = _MAX_SHOWN_BYTES // 2
    head, tail = (part.decode("utf-8", "ignore") for part in (encoded[:half], encoded[-half:]))
    left_out = len(encoded) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[{left_out} bytes left out]\n{tail}"


def _listed(problems: Sequence[str]) -> str:
    return "\n".join(f"- {problem}" for problem in problems)
