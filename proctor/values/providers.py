"""What engines, providers and their models can, the parameters they take, and servers that orders may name.

The scheduler refuses an order by these rules when it is submitted, the worker a request before it is sent.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from proctor.values.generation import Range
from proctor.values.scoring import ScoringMethod

MAX_ROLLOUTS = 100


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """`name` is how people write it; `unknown` are parameters that it does not take.

    `extra` are its own parameters, with a range where one is a number; None means any but those
    `set_by_proctor`. Where `only_temperature` is set, no other can be ordered.
    """

    name: str
    unknown: frozenset[str] = frozenset()
    ranges: tuple[Range, ...] = ()
    only_temperature: float | None = None
    set_by_proctor: frozenset[str] = frozenset()
    extra: Mapping[str, Range | None] | None = None

    @property
    def temperatures(self) -> frozenset[float]:
        """The temperatures that a task may have and still run; empty for any."""
        return frozenset() if self.only_temperature is None else frozenset({0.0, self.only_temperature})


_SAYS_GIVEN_TEXTS = (ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED)
# Behind the OpenAI protocol a server constrains answers only where its pool says by which field.
SCORING_METHODS: Mapping[str, tuple[ScoringMethod, ...]] = MappingProxyType(
    {
        "vllm": tuple(ScoringMethod),
        "openai": (ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE),
        "ollama": _SAYS_GIVEN_TEXTS,
        "gemini": _SAYS_GIVEN_TEXTS,
        "anthropic": (ScoringMethod.GENERATE,),
    }
)
# Engines that answer messages and cannot continue a text as it is.
CHAT_ONLY = frozenset({"gemini", "anthropic"})

_VLLM_EXTRA: Mapping[str, Range | None] = MappingProxyType(
    {
        "min_p": Range("min_p", 0, 1),
        "presence_penalty": Range("presence_penalty", -2, 2),
        "frequency_penalty": Range("frequency_penalty", -2, 2),
        "min_tokens": Range("min_tokens", 0),
        "ignore_eos": None,
        "stop_token_ids": None,
        "bad_words": None,
    }
)
# Gemini's seed has 32 bits, and rollout n uses seed + n.
_GEMINI_SEED = Range("seed", 0, 2**31 - MAX_ROLLOUTS)
RULES: Mapping[str, ProviderRules] = MappingProxyType(
    {
        "vllm": ProviderRules("The vLLM engine", frozenset({"context_tokens"}), extra=_VLLM_EXTRA),
        "ollama": ProviderRules(
            "Ollama", set_by_proctor=frozenset({"num_predict", "num_ctx", "repeat_penalty"})
        ),
        "gemini": ProviderRules(
            "Gemini",
            frozenset({"repetition_penalty", "context_tokens"}),
            (Range("top_k", 1), _GEMINI_SEED),
            set_by_proctor=frozenset(
                {
                    "maxOutputTokens",
                    "stopSequences",
                    "candidateCount",
                    "contents",
                    "systemInstruction",
                    "generationConfig",
                }
            ),
        ),
        "anthropic": ProviderRules(
            "Anthropic",
            frozenset({"top_p", "top_k", "seed", "repetition_penalty", "context_tokens"}),
            only_temperature=1.0,
            set_by_proctor=frozenset({"stop_sequences", "system"}),
        ),
        "openai": ProviderRules("A server behind the OpenAI protocol", frozenset({"context_tokens"})),
    }
)
# Most servers behind the OpenAI protocol take more than these two document.
_STRICT = frozenset({"top_k", "repetition_penalty", "context_tokens"})
RULES_OF_HOST: Mapping[str, ProviderRules] = MappingProxyType(
    {"api.openai.com": ProviderRules("OpenAI", _STRICT), "api.x.ai": ProviderRules("xAI", _STRICT)}
)


def rules_for(engine: str, host: str = "") -> ProviderRules:
    """The rules of an engine; behind the OpenAI protocol those of the server's host, where it is known."""
    return RULES_OF_HOST.get(host, RULES[engine]) if engine == "openai" else RULES[engine]


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """What every model behind an engine can be asked for. `logprobs` are those of generated tokens."""

    chat: bool = False
    completion: bool = False
    loglikelihood: bool = False
    constrained: bool = False
    seed: bool = False
    logprobs: bool = False
    images: bool = False


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as "provider/name". None and "" mean unknown.

    `memory_bytes` is what serving it takes; `problem` is why it cannot be loaded, in one sentence.
    """

    model: str
    pool: str = ""
    is_loaded: bool = False
    context_tokens: int | None = None
    size_bytes: int | None = None
    memory_bytes: int | None = None
    quantization: str = ""
    capabilities: ModelCapabilities | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine is; counts are since it started, `kv_cache_usage` is a share from 0 to 1."""

    running_requests: int = 0
    waiting_requests: int = 0
    kv_cache_usage: float = 0.0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    generated_tokens: int = 0


_MAX_LETTERS = 1024
# Letters that every reader of addresses reads alike: no escapes, no user names, no queries.
_PLAIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?")
_PORTS = {"http": 80, "https": 443}


class NoBaseUrl(ValueError):
    """The message says what an address must look like."""


@dataclass(frozen=True, slots=True)
class BaseUrl:
    scheme: str
    host: str
    port: int
    segments: tuple[str, ...]

    def holds(self, other: "BaseUrl") -> bool:
        """Whether the other is this address or lies below it."""
        is_same_server = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return is_same_server and other.segments[: len(self.segments)] == self.segments


def parse_base_url(text: str) -> BaseUrl:
    """Raises NoBaseUrl, which does not repeat the text: it may hold a password."""
    if len(text) > _MAX_LETTERS or not _PLAIN.fullmatch(text):
        raise NoBaseUrl(
            "must be a plain address such as http://server:8000/v1, in small letters up to the path, "
            "without a user name, password, query or escapes"
        )
    try:
        parts = urlsplit(text)
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError as error:  # a port above 65535, or no address of version 6
        raise NoBaseUrl("has an address or a port that there is not") from error
    segments = tuple(segment for segment in parts.path.split("/") if segment)
    if port == 0 or not {".", ".."}.isdisjoint(segments):
        raise NoBaseUrl("must have a port from 1 to 65535 and a path without . and ..")
    return BaseUrl(parts.scheme, parts.hostname or "", port, segments)


def parse_allowed(text: str) -> tuple[BaseUrl, ...]:
    """Addresses between commas or white space; raises NoBaseUrl."""
    return tuple(parse_base_url(each) for each in re.split(r"[,\s]+", text) if each)


def is_allowed(base_url: BaseUrl, allowed: Iterable[BaseUrl]) -> bool:
    return any(each.holds(base_url) for each in allowed)


def may_ask(text: str, allowed: Iterable[BaseUrl]) -> bool:
    """Whether the text is an address that is allowed."""
    try:
        return is_allowed(parse_base_url(text), allowed)
    except NoBaseUrl:
        return False


def host_of(text: str) -> str:
    """The host of an address that an operator wrote, which may be any; empty where it has none."""
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""
