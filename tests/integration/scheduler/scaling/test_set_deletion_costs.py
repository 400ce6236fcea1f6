"""Pods of workers get deletion costs, so that a pool that shrinks loses the emptiest first."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.scheduler.scaling.kubernetes import DeletionCostNotSet, KubernetesPodCosts
from services.scheduler.scaling.pool_demand import PoolDemand
from services.scheduler.scaling.ports import StoredDemands
from services.scheduler.scaling.set_deletion_costs import SetDeletionCosts
from services.scheduler.workers.worker import Worker
from tests.contract.deploy.settings import SETTINGS
from tests.fakes.pools import model_pool
from tests.fakes.scheduler.kubernetes_api import KubernetesApi, kubernetes_api
from tests.fakes.scheduler.surroundings import START, ListedWorkers
from tests.harness.helm import render

GPU = model_pool("gpu", "vllm/a", concurrency=256)
# Oldest first; the order in which a ReplicaSet would take the newest does not help.
IN_FLIGHT = {"gpu-a": 0, "gpu-b": 200, "gpu-c": 3, "gpu-d": 256, "gpu-e": 0, "gpu-f": 120}


class Demands:
    def __init__(self, workers: int) -> None:
        self.workers = workers

    async def demands(self) -> StoredDemands:
        return StoredDemands({"gpu": PoolDemand("gpu", self.workers)}, START)

    async def keep(self, *_: object) -> None:
        raise AssertionError("what a pool needs is not changed here")


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[KubernetesApi]:
    """With the role that the chart makes."""
    [role] = [each for each in render(SETTINGS["the emptiest pod first"]) if each["kind"] == "Role"]
    async with kubernetes_api(tmp_path, role["rules"]) as api:
        api.pods = {pod: {} for pod in IN_FLIGHT}
        yield api


def setting(api: KubernetesApi, wanted: int) -> tuple[SetDeletionCosts, ListedWorkers]:
    workers = ListedWorkers()
    workers.live = [worker(pod, count) for pod, count in IN_FLIGHT.items()]
    costs = KubernetesPodCosts(api.url, api.account)
    return SetDeletionCosts(pools=(GPU,), registry=workers, store=Demands(wanted), costs=costs), workers


def worker(pod: str, samples_in_flight: int) -> Worker:
    return Worker(
        f"worker of {pod}", "gpu", "vllm", samples_in_flight=samples_in_flight, concurrency=256, pod=pod
    )


async def test_emptiest_pods_go_first(api: KubernetesApi) -> None:
    costs, _ = setting(api, 2)
    await costs.set()
    assert sorted(api.scale_down(2)) == ["gpu-a", "gpu-e"]
    assert api.scale_down(2) == ["gpu-c", "gpu-f"]


async def test_without_costs_a_busy_pod_would_go(api: KubernetesApi) -> None:
    assert api.scale_down(1) == ["gpu-f"]


@pytest.mark.parametrize("wanted", [0, 6, 8])
async def test_no_cost_is_set_where_no_pod_has_to_be_chosen(api: KubernetesApi, wanted: int) -> None:
    costs, _ = setting(api, wanted)
    await costs.set()
    assert api.calls == []


async def test_cost_changes_only_with_what_a_worker_does(api: KubernetesApi) -> None:
    costs, workers = setting(api, 2)
    await costs.set()
    api.calls.clear()
    workers.live = [worker(pod, count + (pod == "gpu-a")) for pod, count in IN_FLIGHT.items()]
    await costs.set()
    await costs.set()
    assert api.calls == ["PATCH /api/v1/namespaces/proctor/pods/gpu-a"]


async def test_pod_that_is_gone_is_passed_over(api: KubernetesApi) -> None:
    costs, _ = setting(api, 2)
    del api.pods["gpu-a"]
    await costs.set()
    assert len(api.pods["gpu-f"]) == 1


async def test_refusal_says_what_is_missing(api: KubernetesApi) -> None:
    api.rules = ()
    costs, _ = setting(api, 2)
    with pytest.raises(DeletionCostNotSet, match="needs the verb patch on pods"):
        await costs.set()


async def test_another_server_gets_no_token(api: KubernetesApi, tmp_path: Path) -> None:
    """Its certificate is not of the authority of the cluster."""
    other = tmp_path / "other"
    other.mkdir()
    async with kubernetes_api(other, ()) as impostor:
        costs = KubernetesPodCosts(impostor.url, api.account)
        with pytest.raises(DeletionCostNotSet, match="CERTIFICATE_VERIFY_FAILED"):
            await costs.put("gpu-a", 1)
        assert impostor.calls == []
