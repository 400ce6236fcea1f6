"""The interface of every engine: what is sent to it, what it answers, and how it fails."""

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from proctor.values.code import CodeResult
from proctor.values.outcome import ChoiceScore, FailureClass
from proctor.values.providers.models import EngineLoad, ModelInfo
from proctor.values.sample import Prompt
from proctor.values.usage import Timing, TokenUsage

# As UTF-8 at most 4 MB: with its batch it stays below the 8 MiB of a NATS message.
MAX_ANSWER_CHARACTERS = 1_000_000
# Each has a pool of connections; orders may name any number of servers.
_KEPT_IDLE = 8


@dataclass(frozen=True, slots=True)
class Sampling:
    """None leaves a parameter to the engine; for suites `max_tokens` and `temperature` are always set."""

    max_tokens: int | None
    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    repetition_penalty: float | None = None
    # The context window to request from engines that size it per request.
    context_tokens: int | None = None
    truncate_left: bool = False
    # Streaming over HTTP measures the time to the first token; the answer is the same.
    is_streamed: bool = False
    # If set, exactly one of them is generated.
    allowed_texts: tuple[str, ...] = ()
    # The run's provider parameters, by the provider's own names.
    extra: Mapping[str, object] = field(default_factory=dict)
    # Further parameters of a data set's row, named as in the OpenAI protocol; they win over `extra`.
    row_extra: Mapping[str, object] = field(default_factory=dict)
    # For a row of a data set: unset parameters take the model's own defaults, and an answer that is more than
    # a text is kept whole.
    is_row: bool = False

    def named(self, names: Mapping[str, str]) -> dict[str, object]:
        """The parameters that are set; `names` maps a field to its name at the provider."""
        values = ((name, getattr(self, field_name)) for field_name, name in names.items())
        return {name: value for name, value in values if value is not None and value != ()}


@dataclass(frozen=True, slots=True)
class Generated:
    """`body_json` is the whole answer in the form of the OpenAI protocol, where it is more than the text.

    `code_result` is set by the worker where it executed the code of the answer; no engine sets it.
    """

    text: str
    finish_reason: str
    usage: TokenUsage
    timing: Timing
    body_json: str = ""
    code_result: CodeResult | None = None


@dataclass(frozen=True, slots=True)
class ScoredChoices:
    choices: tuple[ChoiceScore, ...]
    usage: TokenUsage
    timing: Timing


class EngineFailure(Exception):
    """The machinery failed, so there is no answer. The message is one sentence without secrets."""

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
    """The server failed, or its answer was cut off or cannot be read: a retry may help."""

    failure_class = FailureClass.PROVIDER_ERROR
    is_transient = True


class RequestRefused(EngineFailure):
    """The server or the model's owner refuses the request: a retry gets the same answer."""

    failure_class = FailureClass.REFUSED


class ModelRefused(RequestRefused):
    """The key, its permissions or the model are refused, so that every request of the run would be.

    Where that is not certain, it may be this request alone.
    """

    def __init__(self, message: str, *, is_certain: bool = True) -> None:
        super().__init__(message)
        self.is_certain = is_certain


class PromptTooLong(EngineFailure):
    failure_class = FailureClass.PROMPT_TOO_LONG


class ModelCannotLoad(EngineFailure):
    """The model does not exist or the engine refuses it: no sample of it can be executed here."""


class UnsupportedRequest(EngineFailure):
    """The engine does not support the request, such as log-likelihood behind a chat-only server."""

    failure_class = FailureClass.REFUSED


class EngineDied(EngineFailure):
    """The engine's process ended: requests in flight are not recorded, and the next load restarts it."""

    is_transient = True


class Engine(Protocol):
    """Cancelling a task that awaits an answer aborts the request at the engine."""

    @property
    def loaded_model(self) -> str | None: ...

    @property
    def gpus(self) -> int:
        """GPUs that the loaded engine uses; 0 without any, and where it runs elsewhere."""

    async def load(self, model: str) -> None:
        """Starts with the model or switches to it; does nothing where it is loaded already."""

    async def generate(self, model: str, prompt: Prompt, sampling: Sampling) -> Generated: ...

    async def score_choices(
        self, model: str, prompt: Prompt, choices: Sequence[str], *, truncate_left: bool
    ) -> ScoredChoices:
        """The log-likelihood of each choice as a continuation of the prompt, in the given order."""

    async def list_models(self) -> tuple[ModelInfo, ...]: ...

    def current_load(self) -> EngineLoad | None:
        """None where the engine runs elsewhere."""

    async def describe(self) -> Mapping[str, str]:
        """Engine, version, hardware: what a run stores so that it can be repeated."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The dimensions that decide the size of a model's key-value cache; 0 is unknown."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden_size: int

    def cache_bytes(self, context_tokens: int, bytes_per_value: int) -> int:
        """2 (keys and values) × layers × kv heads × head dim × context × bytes of a value; 0 is unknown.

        The least cache that serves one request of full length, or more where some layers look back less far.
        """
        head_dim = self.head_dim or (self.hidden_size // self.heads if self.heads else 0)
        return 2 * self.layers * self.kv_heads * head_dim * context_tokens * bytes_per_value


class EngineCache:
    """`make_other` makes a keyless engine for a base URL; None where the pool uses only its own server."""

    def __init__(self, own: Engine, make_other: Callable[[str], Engine] | None = None) -> None:
        self.own = own
        self._make_other = make_other
        self._others: OrderedDict[str, Engine] = OrderedDict()
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def for_server(self, base_url: str) -> AsyncIterator[Engine]:
        """It stays open while it is used; of the idle ones the latest are kept."""
        engine = self._other(base_url)
        self._users[base_url] += 1
        try:
            yield engine
        finally:
            self._users[base_url] -= 1
            await self._close_idle()

    async def close(self) -> None:
        while self._others:
            await self._others.popitem()[1].close()

    def _other(self, base_url: str) -> Engine:
        if self._make_other is None:
            raise UnsupportedRequest("This pool asks no server but its own; leave base_url out of the order.")
        if base_url not in self._others:
            self._others[base_url] = self._make_other(base_url)
        # The first of the dictionary is the one that has been idle longest.
        self._others.move_to_end(base_url)
        return self._others[base_url]

    async def _close_idle(self) -> None:
        for base_url in list(self._others):
            if len(self._others) <= _KEPT_IDLE:
                return
            if not self._users[base_url]:
                # Before the await: a request that comes meanwhile makes an engine of its own.
                del self._users[base_url]
                await self._others.pop(base_url).close()
