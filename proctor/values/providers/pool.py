"""A pool: the engine or provider of its models, and the requests that they support."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from proctor.values.names.model_name import provider_of, split_model
from proctor.values.providers.rules import CHAT_ONLY, SCORING_METHODS
from proctor.values.scoring import PromptForm, ScoringMethod


class ConstrainedField(StrEnum):
    """The field of a request that restricts the answer of an OpenAI-compatible server to given texts."""

    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_CHOICE = "guided_choice"
    RESPONSE_FORMAT = "response_format"


class MaxTokensField(StrEnum):
    """The field of a request that limits the answer to a chat behind the OpenAI protocol."""

    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"

    @property
    def other(self) -> "MaxTokensField":
        return next(each for each in MaxTokensField if each is not self)


@dataclass(frozen=True, slots=True)
class PoolModel:
    """A model with local weights at `path`, or the LoRA adapter `lora` over those.

    Models with the same `engine_key` are served by one engine, at once. `tool_parser` is vLLM's name of how
    the model writes calls of tools; without it the model takes none. `reasoning_parser` is its name of how
    the model writes its reasoning; "" for the one that is known for the model, if any; "none" for none.
    """

    name: str
    path: str
    engine_args: Mapping[str, object] = field(default_factory=dict)
    lora: str = ""
    engine_key: str = ""
    tool_parser: str = ""
    reasoning_parser: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider whose server is called, and the environment variable with its key.

    Without `max_tokens_field` the host of the server decides which one is sent.
    """

    name: str
    base_url: str
    api_key_env: str = ""
    constrained_field: ConstrainedField | None = None
    max_tokens_field: MaxTokensField | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Serves either `models` of its own or any model of its `provider`, `concurrency` samples at a time.

    `scoring_methods` are those that its engine or server has.
    """

    name: str
    engine: str
    concurrency: int
    models: tuple[PoolModel, ...] = ()
    provider: Provider | None = None
    scoring_methods: frozenset[ScoringMethod] = frozenset(SCORING_METHODS["openai"])

    @property
    def provider_name(self) -> str:
        return self.provider.name if self.provider else self.engine

    @property
    def providers(self) -> frozenset[str]:
        """The first parts of the names of its models."""
        if self.provider:
            return frozenset({self.provider.name})
        return frozenset(provider_of(model.name) for model in self.models)

    @property
    def base_url(self) -> str:
        return self.provider.base_url if self.provider else ""

    @property
    def serves_any_model(self) -> bool:
        return self.provider is not None

    def serves(self, model: str) -> bool:
        provider, name = split_model(model)
        if self.provider is not None and provider == self.provider.name and name:
            return True
        return any(listed.name == model for listed in self.models)

    @property
    def constrained_field(self) -> ConstrainedField | None:
        """The field of requests that constrains answers of its server; None where none is sent."""
        is_able = self.provider is not None and ScoringMethod.CONSTRAINED in self.scoring_methods
        return self.provider.constrained_field if self.provider and is_able else None

    @property
    def can_truncate(self) -> bool:
        """Prompts are cut in tokens, which only an engine in the worker itself counts."""
        return self.engine == "vllm"

    @property
    def completes_text(self) -> bool:
        """Whether a plain text is continued where the order leaves the form open."""
        return self.provider is None

    @property
    def can_complete(self) -> bool:
        """Whether a plain text can be continued as it is."""
        return self.engine not in CHAT_ONLY

    def methods_for(self, prompt_form: PromptForm | None) -> tuple[ScoringMethod, ...]:
        """The ways to score choices for prompts of that form, the preferred one first."""
        return tuple(method for method in ScoringMethod if self._can_score(method, prompt_form))

    def _can_score(self, method: ScoringMethod, prompt_form: PromptForm | None) -> bool:
        """A server behind HTTP scores no given text after a chat: the template is applied on its side."""
        is_text_after_chat = method is ScoringMethod.LOGLIKELIHOOD and prompt_form is PromptForm.CHAT
        return method in self.scoring_methods and (self.engine == "vllm" or not is_text_after_chat)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of models that one engine serves together; every other model is a group of its own."""
        by_engine: dict[str, list[str]] = {}
        for model in self.models:
            by_engine.setdefault(model.engine_key or model.name, []).append(model.name)
        return tuple(map(tuple, by_engine.values()))


def pool_serving(model: str, pools: Iterable[Pool]) -> Pool | None:
    """The first pool that serves the model; one that lists it comes before one that serves any."""
    by_list_first = sorted(pools, key=lambda pool: pool.serves_any_model)
    return next((pool for pool in by_list_first if pool.serves(model)), None)
