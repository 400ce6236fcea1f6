"""The pool a worker belongs to: its engine, what it serves, and how much at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class PoolModel:
    """A model with local weights, or a LoRA adapter over those at `path`.

    Models with the same `engine_key` are served by one engine, at once.
    """

    name: str
    path: str
    engine_args: Mapping[str, object]
    lora: str = ""
    engine_key: str = ""


class ConstrainedField(StrEnum):
    """The field of a request by which a server lets only given texts be said."""

    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_CHOICE = "guided_choice"
    RESPONSE_FORMAT = "response_format"


@dataclass(frozen=True, slots=True)
class Provider:
    """Whose server is asked, and with the key of which environment variable.

    Behind the OpenAI protocol servers differ: some weigh given texts, and without a `constrained_field`
    none is asked to constrain an answer.
    """

    name: str
    base_url: str
    api_key_env: str
    has_loglikelihood: bool = True
    constrained_field: ConstrainedField | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """It has either models of its own or a provider, any of whose models it serves."""

    name: str
    engine: str
    concurrency: int
    models: tuple[PoolModel, ...]
    provider: Provider | None

    @property
    def provider_name(self) -> str:
        return self.provider.name if self.provider else self.engine

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.models)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Models that one engine serves together; each of the others is a group of its own."""
        by_engine: dict[str, list[str]] = {}
        for model in self.models:
            by_engine.setdefault(model.engine_key or model.name, []).append(model.name)
        return tuple(map(tuple, by_engine.values()))

    @property
    def completes_text(self) -> bool:
        """Whether a plain text is continued where the order leaves it open; a provider's models chat."""
        return self.provider is None
