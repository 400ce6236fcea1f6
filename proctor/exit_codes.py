"""Exit codes of the command line and of the local stack."""

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """Exit codes. Each value has its `meaning`: the text of `--help` and of the reference."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "done; a run that was followed has completed, and a gate passed"
    FAILED = (
        1,
        "a run or a gate failed, `doctor` found something missing, or `rollouts check` an unsound task",
    )
    REFUSED = 2, "wrong usage, or the input was refused"
    UNREACHABLE = 3, "no gateway answers"
    NOT_FOUND = 4, "something that was named does not exist"
    CANCELLED = 5, "the run was cancelled"
    INTERNAL = 6, "an internal error"
    STACK_RUNNING = 7, "a stack is already running"
    PORT_TAKEN = 8, "a port is taken"
    INCONCLUSIVE = 9, "a gate can decide neither"
    INTERRUPTED = 130, "interrupted; the run goes on"
