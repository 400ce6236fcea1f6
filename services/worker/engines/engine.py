"""What the worker asks of any engine, and how an engine fails: the seam between shards and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

LONGEST_ANSWER_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """`content` is the text, of parts too; `fields_json` what the turn has besides, as JSON object text, and
    "content" itself where it has parts.
    """

    role: str
    content: str
    fields_json: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One of the two: a text to continue, or messages to answer."""

    text: str = ""
    messages: tuple[ChatMessage, ...] = ()

    @property
    def is_chat(self) -> bool:
        return bool(self.messages)


@dataclass(frozen=True, slots=True)
class Sampling:
    """None is left to the engine; of a suite, `max_tokens` and `temperature` never are."""

    max_tokens: int | None
    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    repetition_penalty: float | None = None
    # The context window to ask of engines that size it by request.
    context_tokens: int | None = None
    truncate_left: bool = False
    # Asks a server over HTTP to stream, so that it shows when the first token comes; the answer is the same.
    is_streamed: bool = False
    # Where there are any, only one of them can be generated.
    allowed_texts: tuple[str, ...] = ()
    # In the provider's own words.
    extra: Mapping[str, object] = field(default_factory=dict)
    # What else the row of a data set asks for, in the words of the OpenAI protocol; it wins over `extra`.
    row_extra: Mapping[str, object] = field(default_factory=dict)
    # For a row of a data set: what is left open is the model's own default, and an answer that is more than a
    # text is kept whole.
    is_row: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    queue_seconds: float | None = None
    first_token_seconds: float | None = None
    # The mean between the tokens after the first.
    between_tokens_seconds: float | None = None
    total_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Generated:
    """`body_json`: the whole answer in the form of the OpenAI protocol, where it is more than the text."""

    text: str
    finish_reason: str
    usage: Usage
    timing: Timing
    body_json: str = ""


@dataclass(frozen=True, slots=True)
class ChoiceScore:
    """The summed log-probability of one continuation; greedy when each of its tokens is the likeliest one."""

    logprob: float
    is_greedy: bool
    token_count: int


@dataclass(frozen=True, slots=True)
class ScoredChoices:
    choices: tuple[ChoiceScore, ...]
    usage: Usage
    timing: Timing


@dataclass(frozen=True, slots=True)
class EngineCapabilities:
    """What every model behind an engine can be asked for; what only some or newer ones can is left out.

    `logprobs` are those of what is generated.
    """

    loglikelihood: bool
    chat: bool
    completion: bool
    constrained: bool
    seed: bool
    logprobs: bool
    images: bool = False


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """`memory_bytes`: what serving it takes; `problem`: why it cannot be loaded, in one sentence.

    `is_loaded` only by a server that says so; what an engine in the worker has loaded it tells itself.
    """

    name: str
    capabilities: EngineCapabilities
    context_length: int | None = None
    size_bytes: int | None = None
    memory_bytes: int | None = None
    quantization: str = ""
    is_loaded: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine in the worker is; counts are of the engine's life."""

    running_requests: int = 0
    waiting_requests: int = 0
    kv_cache_usage: float = 0.0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    generated_tokens: int = 0


class FailureClass(StrEnum):
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    PROVIDER_ERROR = "provider_error"
    REFUSED = "refused"
    PROMPT_TOO_LONG = "prompt_too_long"
    ENGINE = "engine"


class EngineFailure(Exception):
    """The machinery failed; the model did not answer. The message is one sentence and holds no secret."""

    failure_class = FailureClass.ENGINE
    is_transient = False

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class RateLimited(EngineFailure):
    failure_class = FailureClass.RATE_LIMIT
    is_transient = True


class RequestTimedOut(EngineFailure):
    failure_class = FailureClass.TIMEOUT
    is_transient = True


class ProviderFailed(EngineFailure):
    """The server failed, or its answer was cut off or cannot be read: asking again may help."""

    failure_class = FailureClass.PROVIDER_ERROR
    is_transient = True


class RequestRefused(EngineFailure):
    """The server or the model's owner says no: asking again gets the same answer."""

    failure_class = FailureClass.REFUSED


class ModelRefused(RequestRefused):
    """Not this request alone: the key, what it may use, or the model. It says nothing of the sample.

    Where that is not certain, it may be this request alone after all.
    """

    def __init__(self, message: str, *, is_certain: bool = True) -> None:
        super().__init__(message)
        self.is_certain = is_certain


class PromptTooLong(EngineFailure):
    failure_class = FailureClass.PROMPT_TOO_LONG


class ModelCannotLoad(EngineFailure):
    """The model is not there or the engine refuses it: no sample of this model can be asked here."""


class UnsupportedRequest(EngineFailure):
    """This engine cannot do what was asked, such as log-likelihood behind a chat-only server."""

    failure_class = FailureClass.REFUSED


class EngineDied(EngineFailure):
    """The engine's process is gone: what was in flight goes back, unrecorded; the next load starts it."""

    is_transient = True


class Engine(Protocol):
    """Cancelling the task that awaits an answer aborts the request at the engine."""

    @property
    def loaded_model(self) -> str | None: ...

    async def load(self, model: str) -> None:
        """Start or swap to the model; nothing happens when it is loaded already."""

    async def generate(self, model: str, prompt: Prompt, sampling: Sampling) -> Generated: ...

    async def score_choices(
        self, model: str, prompt: Prompt, choices: Sequence[str], *, truncate_left: bool
    ) -> ScoredChoices:
        """The log-likelihood of each choice as the continuation of the prompt, in the order given."""

    async def list_models(self) -> tuple[ModelInfo, ...]: ...

    def load_now(self) -> EngineLoad | None:
        """How busy it is; None where it runs elsewhere."""

    async def describe(self) -> Mapping[str, str]:
        """Engine, version and hardware: what a run stores so that it can be repeated."""

    async def close(self) -> None: ...
