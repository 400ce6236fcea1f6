"""How a task is asked and scored: the choices of an order, and the scoring that is sent with a task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from proctor.values.contract_enum import ContractEnum

# How a model is told to choose in words. It is no part of the sample, which may be scored by log-likelihood
# too (decision 0007): workers put it before the prompt that they send, pages before the one that they show.
_BY_TEXT = "Reply with the text of exactly one of these options, and nothing else:\n{options}\n\n{prompt}"
# What the letters stand for is in the prompt.
_BY_LETTER = "Reply with the letter of exactly one option, {options}, and nothing else.\n\n{prompt}"
# Stored with the run as `choice_instruction`; another text gets another number.
INSTRUCTION_VERSION = "2"
# The step of a filter pipeline that is Python code of the task: `code` names it as `path:name`.
CODED_FILTER = "custom"


class OutputType(ContractEnum):
    """The form of an answer: one of the given choices, free text up to a stop, or how likely a given text is.

    That text follows a prompt, or is a whole document (`loglikelihood_rolling`).
    """

    MULTIPLE_CHOICE = "multiple_choice", 1
    GENERATE_UNTIL = "generate_until", 2
    LOGLIKELIHOOD = "loglikelihood", 3
    LOGLIKELIHOOD_ROLLING = "loglikelihood_rolling", 4

    @property
    def is_of_given_text(self) -> bool:
        """Only log-probabilities answer it: no model says them in words."""
        return self in (OutputType.LOGLIKELIHOOD, OutputType.LOGLIKELIHOOD_ROLLING)


class ScoringMethod(ContractEnum):
    """How choices are scored, the preferred method first. Figures of different methods are not comparable."""

    LOGLIKELIHOOD = "loglikelihood", 1
    GENERATE = "generate", 2
    CONSTRAINED = "constrained", 3

    @property
    def in_words(self) -> str:
        """Its name in forms and reports."""
        return _METHODS_IN_WORDS[self]


_METHODS_IN_WORDS = {
    ScoringMethod.LOGLIKELIHOOD: "log-likelihood",
    ScoringMethod.GENERATE: "generated text",
    ScoringMethod.CONSTRAINED: "constrained decoding",
}


class Truncation(ContractEnum):
    """The treatment of a prompt that is longer than the model's context."""

    NONE = "none", 1
    LEFT = "left", 2


class Reasoning(ContractEnum):
    """Whether the reasoning in a model's text is scored with its answer."""

    SEPARATE = "separate", 1
    KEEP = "keep", 2


class PromptForm(ContractEnum):
    """Whether a text prompt is continued as it is or sent as one user message."""

    COMPLETION = "completion", 1
    CHAT = "chat", 2


@dataclass(frozen=True, slots=True)
class MetricUse:
    """A metric by name. `options_json` is a JSON object as text, "" for no options.

    `function` and `aggregation` name Python code of the task as `path:function`: it scores an answer, and
    makes the figure of what all answers score. `less_is_better` is said of metrics by such code; those of the
    catalogue have their own direction.
    """

    name: str
    options_json: str = ""
    function: str = ""
    aggregation: str = ""
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class TaskScoring:
    """The fields of a task that scoring uses, as they are stored and sent.

    The first metric is the task's main one; without metrics answers are kept and not scored.
    `filters_json` is a JSON array as text, "" for no filters. `process_results` names Python code of the task
    that gives the values of all its metrics; `code_digest` is that of the files of all its code. `is_logged`:
    the scores are those of another tool's log, and no answer is scored here.
    """

    output_type: OutputType
    metrics: tuple[MetricUse, ...]
    filters_json: str = ""
    target_delimiter: str = " "
    keeps_reasoning: bool = False
    process_results: str = ""
    code_digest: str = ""
    is_logged: bool = False


@dataclass(frozen=True, slots=True)
class GroupMetric:
    """A metric summed up over a group: each sample counts the same, or else each task."""

    metric: str
    is_weighted_by_size: bool = True


Group = TypeVar("Group")


def benchmark_group(groups: Sequence[Group]) -> Group | None:
    """The group of all tasks, whose figures are those of the benchmark: the last one. None without groups."""
    return groups[-1] if groups else None


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Tasks that are also summed up together. Without `metrics` every metric of its tasks is."""

    group: str
    tasks: tuple[str, ...]
    metrics: tuple[GroupMetric, ...] = ()


def are_letters(choices: Sequence[str]) -> bool:
    """Whether every choice is only a letter, which stands for a text elsewhere."""
    texts = [choice.strip() for choice in choices]
    return all(len(text) == 1 and text.isascii() and text.isupper() for text in texts)


def with_choice_instruction(prompt: str, choices: Sequence[str]) -> str:
    """The prompt as it is sent to a model that answers in words."""
    texts = [choice.strip() for choice in choices]
    if are_letters(texts) and len(texts) > 1:
        options = f"{', '.join(texts[:-1])} or {texts[-1]}"
        return _BY_LETTER.format(options=options, prompt=prompt)
    return _BY_TEXT.format(options="\n".join(f"- {text}" for text in texts), prompt=prompt)
