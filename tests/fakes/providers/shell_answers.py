"""A model that works in a shell: the lines `DO command` of its task, one in each answer, then the end."""

import re
from collections.abc import Mapping, Sequence

_STEP = re.compile(r"^DO (.+)$", re.MULTILINE)
_SHELL = "exactly one command in one fenced block"
_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def shell_reply(messages: Sequence[Mapping[str, str]]) -> str | None:
    """None for a chat that is no rollout."""
    if len(messages) < 2 or _SHELL not in messages[0]["content"]:
        return None
    steps = _STEP.findall(messages[1]["content"])
    done = sum(message["role"] == "assistant" for message in messages)
    command = steps[done] if done < len(steps) else _END
    return f"Step {done + 1}.\n\n```bash\n{command}\n```\n"
