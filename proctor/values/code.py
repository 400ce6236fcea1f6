"""Code that a model writes: how it is taken from the answer, and what its tests said."""

import re
from dataclasses import dataclass

from proctor.values.contract_enum import ContractEnum

_FENCE = "```"
_BLOCK = re.compile(r"```[^\n`]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)


class CodeAnswer(ContractEnum):
    """Which part of an answer is its code."""

    WHOLE = "whole", 1
    UNTIL_FENCE = "until_fence", 2
    FIRST_BLOCK = "first_block", 3


# CPU time of a program, unless its suite says otherwise.
DEFAULT_CODE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class CodeCheck:
    """One Python program is executed: `prefix`, the code of the answer, a line break, and `tests`.

    It passes where it ends without an exception within `timeout_seconds` of CPU time.
    """

    prefix: str
    tests: str
    answer: CodeAnswer = CodeAnswer.WHOLE
    timeout_seconds: float = DEFAULT_CODE_SECONDS

    def program(self, answer: str) -> str:
        return f"{self.prefix}{code_in(answer, self.answer)}\n{self.tests}"


@dataclass(frozen=True, slots=True)
class CodeResult:
    """`detail`: "passed", or how it failed, in one line."""

    is_passed: bool
    detail: str = ""

    @property
    def score(self) -> float:
        return float(self.is_passed)


def code_in(answer: str, part: CodeAnswer) -> str:
    """A text without any fence is code as it is."""
    match part:
        case CodeAnswer.WHOLE:
            return answer
        case CodeAnswer.UNTIL_FENCE:
            return answer.partition(_FENCE)[0]
        case CodeAnswer.FIRST_BLOCK:
            found = _BLOCK.search(answer)
            return found[1] if found else answer
