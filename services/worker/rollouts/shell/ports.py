"""The port of a shell agent: the form in which its model works."""

from collections.abc import Sequence
from typing import Protocol

from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.sample import ChatMessage
from services.common.sandboxes.sandbox import CommandResult
from services.worker.rollouts.shell.answer_form import ShellAnswer


class AnswerForm(Protocol):
    """How a model is told of its task, says its commands, and is shown what came of them."""

    @property
    def tools(self) -> Sequence[Json]: ...

    def opening(self, instruction: str, cwd: str) -> tuple[ChatMessage, ...]: ...

    def read(self, answer: Answer) -> ShellAnswer: ...

    def observation(self, result: CommandResult, seconds: float) -> str:
        """`seconds` are those that the command had."""
        ...
