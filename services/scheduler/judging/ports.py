"""Ports of judging: where judge prompts come from, and the answers of a run."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.judging.judge_prompt import JudgePrompt
from services.scheduler.judging.judged_answer import JudgedAnswer


class JudgePrompts(Protocol):
    def names(self) -> Sequence[str]:
        """The names of the installed prompts, sorted."""
        ...

    def document(self, name: str) -> str | None:
        """The document of an installed prompt; None if there is none of that name."""
        ...

    def read(self, document: str) -> JudgePrompt:
        """Raises `InvalidJudgePrompt`, and ValueError for its scale."""
        ...


class AnswersOfRuns(Protocol):
    def pages(self, run_id: RunId) -> AsyncIterator[Sequence[JudgedAnswer]]:
        """The answers of a run in the order of samples and rollouts, without those that failed.

        A page may be empty. Raises `RemoteError`.
        """
        ...
