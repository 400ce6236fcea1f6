"""Abilities of engines and providers, and the parameters that they take.

The scheduler refuses an order by these rules when it is submitted, the worker a request before it is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from proctor.values.generation import Range
from proctor.values.scoring import ScoringMethod

MAX_ROLLOUTS = 100
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
# Most servers behind the OpenAI protocol take more than these two document.
_STRICT = frozenset({"top_k", "repetition_penalty", "context_tokens"})


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """`name` is how people write it; `unknown` are parameters that it does not take.

    `extra` are its own parameters, with a range where one is a number; None means any but those
    `set_by_proctor`. Where `only_temperature` is set, no other can be ordered. `keys_page` is where the
    provider gives keys; empty where a server needs none.
    """

    name: str
    unknown: frozenset[str] = frozenset()
    ranges: tuple[Range, ...] = ()
    only_temperature: float | None = None
    set_by_proctor: frozenset[str] = frozenset()
    extra: Mapping[str, Range | None] | None = None
    keys_page: str = ""

    @property
    def temperatures(self) -> frozenset[float]:
        """The temperatures that a task may have and still run; empty for any."""
        return frozenset() if self.only_temperature is None else frozenset({0.0, self.only_temperature})


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
            keys_page="https://aistudio.google.com/apikey",
        ),
        "anthropic": ProviderRules(
            "Anthropic",
            frozenset({"top_p", "top_k", "seed", "repetition_penalty", "context_tokens"}),
            only_temperature=1.0,
            set_by_proctor=frozenset({"stop_sequences", "system"}),
            keys_page="https://console.anthropic.com/settings/keys",
        ),
        "openai": ProviderRules("A server behind the OpenAI protocol", frozenset({"context_tokens"})),
    }
)
RULES_OF_HOST: Mapping[str, ProviderRules] = MappingProxyType(
    {
        "api.openai.com": ProviderRules("OpenAI", _STRICT, keys_page="https://platform.openai.com/api-keys"),
        "api.x.ai": ProviderRules("xAI", _STRICT, keys_page="https://console.x.ai"),
    }
)


def rules_for(engine: str, host: str = "") -> ProviderRules:
    """The rules of an engine; behind the OpenAI protocol those of the server's host, where it is known."""
    return RULES_OF_HOST.get(host, RULES[engine]) if engine == "openai" else RULES[engine]
