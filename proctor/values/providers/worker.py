"""The state of a worker, and how busy its engine is."""

from dataclasses import dataclass

from proctor.values.contract_enum import ContractEnum

# Time for a worker's requests in flight when it stops, unless its setting says otherwise.
DEFAULT_DRAIN_SECONDS = 20.0
# Of workers that report more at a time, those that were heard last are known. A worker names itself, so one
# alone could fill the memory of the scheduler.
MAX_POOL_WORKERS = 4096


class WorkerState(ContractEnum):
    """Only a worker that is ready answers samples. One that is draining takes no more shards."""

    LOADING = "loading", 1
    READY = "ready", 2
    DRAINING = "draining", 3
    NOT_LOADED = "not_loaded", 4


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine is; counts are since it started, `kv_cache_usage` is a share from 0 to 1."""

    running_requests: int = 0
    waiting_requests: int = 0
    kv_cache_usage: float = 0.0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    generated_tokens: int = 0
