"""Pools: which models they serve, by which names, and what they can do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from services.scheduler.runs.orders.run_order import PromptForm, ScoringMethod
from services.scheduler.workers.base_urls import BaseUrl

_SAYS_GIVEN_TEXTS = frozenset({ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED})
# How each engine can score choices; behind the OpenAI protocol a pool has to say what constrains an answer.
METHODS_OF: Mapping[str, frozenset[ScoringMethod]] = MappingProxyType(
    {
        "vllm": frozenset(ScoringMethod),
        "openai": frozenset({ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE}),
        "ollama": _SAYS_GIVEN_TEXTS,
        "gemini": _SAYS_GIVEN_TEXTS,
        "anthropic": frozenset({ScoringMethod.GENERATE}),
    }
)
_CHAT_ONLY = frozenset({"gemini", "anthropic"})


@dataclass(frozen=True, slots=True)
class Pool:
    """Serves the `models` it lists, or any model of its `provider`; `can` holds the ways to score choices.

    `base_url` is its provider's server; `may_ask` are those that an order may name instead.
    """

    name: str
    engine: str
    concurrency: int
    models: tuple[str, ...] = ()
    provider: str = ""
    can: frozenset[ScoringMethod] = METHODS_OF["openai"]
    base_url: str = ""
    may_ask: tuple[BaseUrl, ...] = ()

    @property
    def providers(self) -> frozenset[str]:
        if self.provider:
            return frozenset({self.provider})
        return frozenset(model.partition("/")[0] for model in self.models)

    @property
    def serves_any_model(self) -> bool:
        return bool(self.provider)

    @property
    def can_truncate(self) -> bool:
        """Prompts are cut in tokens, which only an engine in the worker itself counts."""
        return self.engine == "vllm"

    @property
    def can_complete(self) -> bool:
        """Whether a plain text can be continued as it is."""
        return self.engine not in _CHAT_ONLY

    def scoring_methods(self, prompt_form: PromptForm | None) -> tuple[ScoringMethod, ...]:
        """The ways to score choices that were put so, the preferred one first."""
        return tuple(method for method in ScoringMethod if self._can_score(method, prompt_form))

    def _can_score(self, method: ScoringMethod, prompt_form: PromptForm | None) -> bool:
        """A server behind HTTP scores no given text after a chat: the template is written on its side."""
        is_text_after_chat = method is ScoringMethod.LOGLIKELIHOOD and prompt_form is PromptForm.CHAT
        return method in self.can and (self.engine == "vllm" or not is_text_after_chat)

    def serves(self, model: str) -> bool:
        provider, _, name = model.partition("/")
        return model in self.models or (provider == self.provider and bool(name))


def supported_providers(pools: Iterable[Pool]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*(pool.providers for pool in pools))))


def pool_serving(model: str, pools: Iterable[Pool]) -> Pool | None:
    """The first pool that serves the model; one that lists it comes before one that serves any."""
    by_list_first = sorted(pools, key=lambda pool: pool.serves_any_model)
    return next((pool for pool in by_list_first if pool.serves(model)), None)


# Name to "provider/name".
Aliases = Mapping[str, str]


def full_name(name: str, aliases: Aliases) -> str:
    """What an order's `model` stands for; itself where it is no alias."""
    return aliases.get(name, name)


def names_for(model: str, aliases: Aliases) -> frozenset[str]:
    """All that lines of a data set may call a model by: in full, without its provider, or by an alias."""
    called = {alias for alias, named in aliases.items() if named == model}
    return frozenset({model, model.partition("/")[2], *called})


def model_named(name: str, pools: Sequence[Pool], aliases: Aliases) -> str | None:
    """The model in full that a bare name stands for, as clients of the OpenAI protocol give it.

    One that is served or an alias; else that of the one pool which lists it without its provider; else it is
    the name of a model at the only pool that serves any. None where that leaves it open.
    """
    full = full_name(name, aliases)
    if pool_serving(full, pools) is not None:
        return full
    listed = {model for pool in pools for model in pool.models if model.partition("/")[2] == name}
    if listed:
        return listed.pop() if len(listed) == 1 else None
    any_model = [pool.provider for pool in pools if pool.serves_any_model]
    return f"{any_model[0]}/{name}" if len(any_model) == 1 and name else None
