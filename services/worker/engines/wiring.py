"""Makes the engine of a pool, the engines of other servers that orders name, and their rate limiters."""

import os
from collections.abc import Callable
from dataclasses import replace

from proctor.values.providers.base_urls import may_ask, parse_allowed
from proctor.values.providers.pool import Pool, Provider
from proctor.values.scoring import ScoringMethod
from services.common.clock import Clock
from services.worker.engines.anthropic.api import AnthropicApi
from services.worker.engines.errors import UnsupportedRequest
from services.worker.engines.gemini.api import GeminiApi
from services.worker.engines.http.ports import ProviderApi
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.ollama.api import OllamaApi
from services.worker.engines.openai.api import OpenAIApi, server_at
from services.worker.engines.ports import Engine
from services.worker.engines.yaml_pools import read_key
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.waits import Backoff
from services.worker.settings import WorkerSettings


def make_rate_limiters(pool: Pool, clock: Clock) -> RateLimiters:
    provider = pool.provider
    if provider is None:
        return RateLimiters(clock=clock, backoff=Backoff())
    return RateLimiters(
        clock=clock,
        backoff=Backoff(),
        provider=provider.name,
        base_url=provider.base_url,
        api_key=read_key(provider.api_key_env, os.environ),
    )


def make_engine(pool: Pool, settings: WorkerSettings, limiters: RateLimiters) -> Engine:
    """vLLM is installed in an environment of its own, so it is imported only for pools that use it."""
    if pool.provider is None:
        return _make_vllm(pool)
    return _make_remote(pool, pool.provider, settings, limiters)


def engines_by_url(
    pool: Pool, settings: WorkerSettings, limiters: RateLimiters
) -> Callable[[str], Engine] | None:
    """Makes engines for other servers, without the pool's API key.

    The scheduler has checked the address of an order, but a message may come from elsewhere.
    """
    provider, allowed = pool.provider, parse_allowed(settings.allowed_base_urls)
    if provider is None or pool.engine != "openai":
        return None

    def make(base_url: str) -> Engine:
        if not may_ask(base_url, allowed):
            raise UnsupportedRequest(
                message="This worker's PROCTOR_ALLOWED_BASE_URLS does not allow the base_url."
            )
        keyless = replace(provider, base_url=base_url, api_key_env="")
        return _make_remote(pool, keyless, settings, limiters)

    return make


def _make_vllm(pool: Pool) -> Engine:
    from services.worker.engines.vllm.engine import VllmEngine  # noqa: PLC0415  # other engines do not load it
    from services.worker.engines.vllm.model_files import VllmSettings  # noqa: PLC0415  # other engines do not load it

    return VllmEngine(settings=VllmSettings(models=pool.models))


def _make_remote(pool: Pool, provider: Provider, settings: WorkerSettings, limiters: RateLimiters) -> Engine:
    endpoint = Endpoint(
        base_url=provider.base_url,
        provider=provider.name,
        api_key=read_key(provider.api_key_env, os.environ),
        api_key_env=provider.api_key_env,
        timeout_seconds=settings.request_timeout_seconds,
        connections=pool.concurrency,
        on_allowed=limiters.on_allowed,
    )
    return HttpEngine(api=_api_of(pool, provider.base_url), endpoint=endpoint)


def _api_of(pool: Pool, base_url: str) -> ProviderApi:
    match pool.engine:
        case "ollama":
            return OllamaApi()
        case "gemini":
            return GeminiApi()
        case "anthropic":
            return AnthropicApi()
        case _:
            return OpenAIApi(
                has_loglikelihood=ScoringMethod.LOGLIKELIHOOD in pool.scoring_methods,
                constrained_field=pool.constrained_field,
                server=server_at(base_url),
                max_tokens_field=pool.provider.max_tokens_field if pool.provider else None,
            )
