"""What work waits for: a worker that can take it, or a server that takes no requests for a while."""

from collections.abc import Sequence

from services.scheduler.pools.pool import Worker


def awaited(model: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """Such as "loading vllm/x"; None where a worker of the pool answers for the model now."""
    crew = [worker for worker in workers if worker.pool == pool]
    if any(not worker.models or worker.answers_for(model) for worker in crew):
        return None
    if any(worker.loading_model == model for worker in crew):
        return f"loading {model}"
    others = sorted({worker.loading_model or worker.loaded_model for worker in crew} - {""})
    if not others:
        return f"waiting for a worker of pool {pool}"
    if len(crew) == 1:
        return f"waiting for the worker of pool {pool}, which has {others[0]} loaded"
    return f"waiting for one of {len(crew)} workers of pool {pool}, which have {', '.join(others)} loaded"


def awaited_server(base_url: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """Empty is the pool's own server. None where it did not say to come back later."""
    held = {
        worker.throttled_servers[base_url]: worker.provider
        for worker in workers
        if worker.pool == pool and base_url in worker.throttled_servers
    }
    if not held:
        return None
    until = max(held)
    server = base_url or held[until]
    return f"waiting for {server}: it said to come back later, and is asked again at {until:%H:%M:%S} UTC"
