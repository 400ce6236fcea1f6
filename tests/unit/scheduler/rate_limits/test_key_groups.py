"""Pools share rate limits if they ask one server with the key of one variable."""

from dataclasses import replace

from proctor.values.providers.pool import Pool
from services.scheduler.rate_limits.key_groups import key_groups
from tests.fakes.pools import ADDRESS, model_pool, provider_pool


def with_key(pool: Pool, variable: str) -> Pool:
    assert pool.provider is not None
    return replace(pool, provider=replace(pool.provider, api_key_env=variable))


def test_pools_of_one_server_and_variable_are_a_group() -> None:
    pools = [
        with_key(provider_pool("first"), "KEY"),
        with_key(provider_pool("second", concurrency=1, base_url=f"{ADDRESS}/"), "KEY"),
    ]
    assert key_groups(pools) == {"first": "first", "second": "first"}


def test_another_server_variable_or_provider_is_another_group() -> None:
    pools = [
        with_key(provider_pool("first"), "KEY"),
        with_key(provider_pool("own key"), "OWN_KEY"),
        provider_pool("no key"),
        with_key(provider_pool("server", base_url="http://other.test/v1"), "KEY"),
        with_key(provider_pool("provider", provider="grok"), "KEY"),
        model_pool("vllm", "vllm/a"),
        model_pool("vllm 2", "vllm/a"),
    ]
    assert key_groups(pools) == {pool.name: pool.name for pool in pools}
