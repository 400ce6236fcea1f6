"""Pools as the scheduler knows them: of a provider's server, or of models that they list."""

from proctor.values.providers.pool import Pool, PoolModel, Provider
from proctor.values.providers.rules import SCORING_METHODS

ADDRESS = "http://127.0.0.1:9/v1"


def provider_pool(
    name: str,
    engine: str = "openai",
    provider: str = "openai",
    *,
    concurrency: int = 64,
    base_url: str = ADDRESS,
) -> Pool:
    methods = frozenset(SCORING_METHODS.get(engine, SCORING_METHODS["openai"]))
    return Pool(name, engine, concurrency, provider=Provider(provider, base_url), scoring_methods=methods)


def model_pool(name: str, *models: str, concurrency: int = 64) -> Pool:
    """Of vLLM engines in workers."""
    methods = frozenset(SCORING_METHODS["vllm"])
    return Pool(
        name, "vllm", concurrency, tuple(PoolModel(model, "/m") for model in models), scoring_methods=methods
    )
