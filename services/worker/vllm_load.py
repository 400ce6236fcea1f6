"""How busy vLLM's engine is, from the metrics that it keeps in this process anyway."""

from __future__ import annotations

from collections import Counter

from prometheus_client import REGISTRY

from services.worker.engine import EngineLoad

_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_CACHE_USE = "vllm:kv_cache_usage_perc"
_QUERIES = "vllm:prefix_cache_queries_total"
_HITS = "vllm:prefix_cache_hits_total"
_GENERATED = "vllm:generation_tokens_total"
_NAMES = (_RUNNING, _WAITING, _CACHE_USE, _QUERIES, _HITS, _GENERATED)


def read_engine_load() -> EngineLoad:
    """Summed over the engine's replicas, but for the share of the cache in use, of which the highest counts.

    vLLM begins anew with every engine that it starts.
    """
    sums: Counter[str] = Counter()
    cache_use = 0.0
    for metric in REGISTRY.restricted_registry(_NAMES).collect():
        for sample in metric.samples:
            sums[sample.name] += int(sample.value)
            if sample.name == _CACHE_USE:
                cache_use = max(cache_use, sample.value)
    return EngineLoad(
        running_requests=sums[_RUNNING],
        waiting_requests=sums[_WAITING],
        kv_cache_usage=cache_use,
        prefix_cache_queries=sums[_QUERIES],
        prefix_cache_hits=sums[_HITS],
        generated_tokens=sums[_GENERATED],
    )
