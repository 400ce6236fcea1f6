"""Pools that share their rate limits, because they ask one server under one API key."""

from collections.abc import Iterable, Mapping

from proctor.values.providers.pool import Pool


def key_groups(pools: Iterable[Pool]) -> Mapping[str, str]:
    """Pool to its group, which has the name of its first pool.

    A group asks one server with the key of one variable. What a worker reports counts in its own group only:
    a worker may name any key, and the scheduler knows none.
    """
    first: dict[tuple[str, ...], str] = {}
    return {pool.name: first.setdefault(_server_and_key(pool), pool.name) for pool in pools}


def _server_and_key(pool: Pool) -> tuple[str, ...]:
    provider = pool.provider
    if provider is None:
        return (pool.name,)
    return (provider.name, provider.base_url.rstrip("/"), provider.api_key_env)
