"""Requests, answers and scores of one side: Proctor or lm-evaluation-harness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """One document. `choices` and their `logprobs` are empty where the answer is a `text`.

    `prompt_tokens` over all requests; 0 where that is not reported, as by lm-evaluation-harness.
    """

    doc_id: int
    prompt_hash: str
    choices: tuple[str, ...]
    logprobs: tuple[float, ...]
    text: str
    scores: Mapping[str, float]
    prompt_tokens: int = 0

    @property
    def choice(self) -> int | None:
        """The likeliest; the first of equal ones."""
        return self.logprobs.index(max(self.logprobs)) if self.logprobs else None

    @property
    def margin(self) -> float:
        """Of the likeliest choice over the second."""
        second, first = sorted(self.logprobs)[-2:]
        return first - second


@dataclass(frozen=True, slots=True)
class ExaminedTask:
    """A task, in order of the documents. `sample_file` is the JSONL of lm-evaluation-harness's form."""

    said: Sequence[Said]
    figures: Mapping[str, float]
    sample_file: bytes


ExaminedSide = Mapping[str, ExaminedTask]
