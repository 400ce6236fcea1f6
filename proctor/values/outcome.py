"""The outcome of a sample: an answer, or a failure of the machinery."""

from dataclasses import dataclass, field

from proctor.values.code import CodeResult
from proctor.values.contract_enum import ContractEnum
from proctor.values.making.quickly_made import quickly_made
from proctor.values.rollout import RolloutVerdict
from proctor.values.usage import Timing, TokenUsage

# Answers of a run that are marked in one call.
MAX_MARKED_ANSWERS = 1000


class FailureClass(ContractEnum):
    """Why the machinery brought no score; the contract says what each class means."""

    RATE_LIMIT = "rate_limit", 1
    TIMEOUT = "timeout", 2
    PROVIDER_ERROR = "provider_error", 3
    REFUSED = "refused", 4
    PROMPT_TOO_LONG = "prompt_too_long", 5
    ENGINE = "engine", 6
    SCORING = "scoring", 7
    SANDBOX = "sandbox", 8
    VERIFIER = "verifier", 9


class OutcomeStatus(ContractEnum):
    """The status of a recorded outcome."""

    SCORED = "scored", 1
    UNPARSED = "unparsed", 2
    FAILED = "failed", 3


@quickly_made
@dataclass(frozen=True, slots=True)
class ChoiceScore:
    """The summed log-probability of one continuation, natural logarithm.

    `is_greedy`: each of its tokens is the likeliest one. `token_count` is 0 where unknown.
    """

    logprob: float
    is_greedy: bool
    token_count: int = 0


@quickly_made
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the model: a text, or a score for each choice.

    A worker that executed its code or judged its rollout adds `code_result` or `verdict`.

    `body_json` is the provider's whole answer in the form of the OpenAI protocol, where a row asked for more
    than a text; "" otherwise. `reasoning` is what its server sent apart from the text, which has none of it;
    reasoning within the text is found by `proctor.values.reasoning`.
    """

    text: str = ""
    finish_reason: str = ""
    choices: tuple[ChoiceScore, ...] = ()
    body_json: str = ""
    code_result: CodeResult | None = None
    verdict: RolloutVerdict | None = None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why there is no score, in one sentence without secrets.

    `answer` is the model's answer where the class is SCORING, None otherwise.
    """

    failure_class: FailureClass
    message: str
    answer: Answer | None = None


@quickly_made
@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a sample. `sample` and `shard` are numbers in the run.

    `gpu_seconds` is its share of the time of the worker's GPUs. Rows do not keep it: it is summed by run.
    """

    sample: int
    rollout: int
    shard: int
    attempt: int
    result: Answer | Failure
    usage: TokenUsage = field(default_factory=TokenUsage)
    timing: Timing = field(default_factory=Timing)
    gpu_seconds: float = 0.0

    @property
    def answer(self) -> Answer | None:
        """The answer, scored or not."""
        return self.result.answer if isinstance(self.result, Failure) else self.result

    @property
    def failure(self) -> Failure | None:
        return self.result if isinstance(self.result, Failure) else None
