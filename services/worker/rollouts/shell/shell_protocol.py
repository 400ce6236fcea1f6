"""Shell and submission command of a shell agent, and the form of the output that it is shown."""

from services.common.sandboxes.sandbox import CommandResult, Ended
from services.worker.rollouts.trajectory import cut

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
_MAX_OUTPUT_CHARACTERS = 10_000


def is_submission(result: CommandResult) -> bool:
    first, *_ = result.text.lstrip().splitlines() or [""]
    return result.is_success and first.strip() == SUBMIT


def observation(result: CommandResult, seconds: float) -> str:
    output = cut(result.text, _MAX_OUTPUT_CHARACTERS)
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
