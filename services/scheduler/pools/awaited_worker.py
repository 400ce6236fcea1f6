"""What work of a model waits for before a worker can take it."""

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
