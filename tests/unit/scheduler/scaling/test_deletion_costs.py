"""The deletion cost of a pod, by what its worker has in flight."""

from services.scheduler.scaling.set_deletion_costs import deletion_costs
from services.scheduler.workers.worker import Worker


def worker(pod: str, samples_in_flight: int, rollouts: int = 0) -> Worker:
    return Worker(
        pod,
        "gpu",
        "vllm",
        pod=pod,
        samples_in_flight=samples_in_flight,
        concurrency=64,
        rollouts_in_flight=rollouts,
    )


def test_worker_with_a_rollout_costs_more_than_one_full_of_samples() -> None:
    workers = [worker("idle", 0), worker("some", 5), worker("full", 64), worker("rollout", 1, 1)]
    assert deletion_costs(workers) == {"idle": 0, "some": 3, "full": 7, "rollout": 8}
