"""Names of pools, providers and models: what an order may call them."""

from collections.abc import Iterable, Mapping, Sequence

from proctor.values.names.model_name import name_of
from proctor.values.providers.pool import Pool, pool_serving
from services.common.errors import DomainError, ErrorKind

# Alias to "provider/name".
Aliases = Mapping[str, str]


class UnknownProvider(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_PROVIDER"):
    """No pool serves the provider "{provider}".{advice} Providers: {supported}."""


class UnknownModel(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_MODEL"):
    """No pool serves the model "{model}". Models of this provider: {supported}."""


def supported_providers(pools: Iterable[Pool]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*(pool.providers for pool in pools))))


def model_names(pools: Iterable[Pool]) -> tuple[str, ...]:
    """The models that pools list by name."""
    return tuple(model.name for pool in pools for model in pool.models)


def full_name(name: str, aliases: Aliases) -> str:
    """The model that an order's `model` means; itself if it is not an alias."""
    return aliases.get(name, name)


def names_for(model: str, aliases: Aliases) -> frozenset[str]:
    """Names by which lines of a data set may call a model: in full, without its provider, or an alias."""
    called = {alias for alias, named in aliases.items() if named == model}
    return frozenset({model, name_of(model), *called})


def model_named(name: str, pools: Sequence[Pool], aliases: Aliases) -> str | None:
    """The full name of the model that clients of the OpenAI protocol call by a bare name.

    A served model or an alias first; then the only listed model of that name, whatever its provider; then a
    model at the only pool that serves any. None if that is ambiguous.
    """
    full = full_name(name, aliases)
    if pool_serving(full, pools) is not None:
        return full
    listed = {model for model in model_names(pools) if name_of(model) == name}
    if listed:
        return listed.pop() if len(listed) == 1 else None
    any_model = [pool.provider_name for pool in pools if pool.serves_any_model]
    return f"{any_model[0]}/{name}" if len(any_model) == 1 and name else None
