"""By which names a model may be called: its own, its aliases, and what lines of data sets call it."""

from collections.abc import Mapping, Sequence

from services.scheduler.pools.pool import Pool, pool_of

# Name to "provider/name".
Aliases = Mapping[str, str]


def full_name(name: str, aliases: Aliases) -> str:
    """What an order's `model` stands for; itself where it is no alias."""
    return aliases.get(name, name)


def names_of(model: str, aliases: Aliases) -> frozenset[str]:
    """All that lines of a data set may call a model by: in full, without its provider, or by an alias."""
    called = {alias for alias, named in aliases.items() if named == model}
    return frozenset({model, model.partition("/")[2], *called})


def model_named(name: str, pools: Sequence[Pool], aliases: Aliases) -> str | None:
    """The model in full that a bare name stands for, as clients of the OpenAI protocol give it.

    One that is served or an alias; else that of the one pool which lists it without its provider; else it is
    the name of a model at the only pool that serves any. None where that leaves it open.
    """
    full = full_name(name, aliases)
    if pool_of(full, pools) is not None:
        return full
    listed = {model for pool in pools for model in pool.models if model.partition("/")[2] == name}
    if listed:
        return listed.pop() if len(listed) == 1 else None
    any_model = [pool.provider for pool in pools if pool.serves_any_model]
    return f"{any_model[0]}/{name}" if len(any_model) == 1 and name else None
