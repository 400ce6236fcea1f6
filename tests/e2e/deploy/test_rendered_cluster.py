"""What the chart says is what starts: rendered pods as processes, and runs through rendered Services."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.harness.cluster.rendered_cluster import RenderedCluster, rendered_cluster
from tests.harness.helm import EXAMPLES, Setting, render
from tests.harness.model_server_process import ModelServerProcess, model_server_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "openai/fake"
ROLLOUTS = 10


def setting(server: ModelServerProcess) -> Setting:
    """The example for remote models, with two of everything."""
    pool = {
        "name": "fake",
        "engine": "openai",
        "min": 2,
        "drainSeconds": 20,
        "provider": {
            "name": "openai",
            "baseUrl": server.url,
            "apiKey": {"secretName": "keys", "key": "fake"},
        },
        "settings": {"ACK_WAIT_SECONDS": 4},
    }
    values = {
        "postgres": {"existing": {"secretName": ""}, "trial": {"enabled": True}},
        "gateway": {"replicas": 2},
        "scheduler": {"replicas": 2},
        "results": {"replicas": 2},
        "objectStore": {"volume": {"existingClaim": "objects"}},
        "noticeSeconds": 1,
        "pools": [pool],
        "test": {"model": MODEL, "apiKey": {"secretName": "test-key", "key": "api-key"}},
    }
    return Setting((EXAMPLES["remote-only"],), values)


SECRETS = {
    "keys": {"fake": "key-of-the-provider\n"},
    "proctor-api-keys": {"api-keys": '{"ann": "key-of-ann"}'},
    "test-key": {"api-key": "key-of-ann"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model_server() -> AsyncIterator[ModelServerProcess]:
    async with model_server_process() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(
    model_server: ModelServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RenderedCluster]:
    objects = render(setting(model_server))
    async with rendered_cluster(objects, SECRETS, tmp_path_factory.mktemp("cluster")) as running:
        yield running


async def test_what_is_rendered_starts_is_healthy_and_completes_the_run_of_helm_test(
    cluster: RenderedCluster,
) -> None:
    components = ("nats", "gateway", "scheduler", "results", "worker-fake")
    assert [len(cluster.pods_of(each)) for each in components] == [1, 2, 2, 2, 2]
    assert all(await asyncio.gather(*(pod.is_alive() for pod in cluster.pods)))

    hook = cluster.make_hook("Pod")
    code = await asyncio.wait_for(hook.run(), 120)
    cluster.pods.remove(hook)
    assert code == 0, hook.log.read_text()


async def test_run_completes_while_a_pod_of_each_service_is_replaced(
    cluster: RenderedCluster, model_server: ModelServerProcess
) -> None:
    client = ServiceClient(cluster)
    await model_server.control(latency_seconds=3)
    config = {"provider": "openai", "model": "fake"}
    order = {"project_id": 1, "suite": "starter", "rollouts": ROLLOUTS, "config": config}
    job = await client.post("/api/v1/benchmarking/run", order)
    asking = asyncio.create_task(client.ask_until_over(job["job_id"]))
    codes = {}
    for component in ("gateway", "results", "scheduler", "worker-fake"):
        [old, _] = cluster.pods_of(component)
        await cluster.replace(old)
        assert old.process is not None
        codes[component] = old.process.returncode
    assert not asking.done(), "the run was over before the last pod was replaced"
    await model_server.control(latency_seconds=0)
    found = await asyncio.wait_for(asking, 120)

    assert codes == dict.fromkeys(codes, 0)
    assert found["status"] == "completed"
    assert found["progress"]["completed"] == found["progress"]["total"] >= 100 * ROLLOUTS
    assert found["failures"] == {}


class ServiceClient:
    """The gateway's Service, as a client with a key calls it: each time another ready pod."""

    def __init__(self, cluster: RenderedCluster) -> None:
        self._cluster = cluster
        self._headers = {"Authorization": "Bearer key-of-ann"}

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, body)

    async def ask_until_over(self, job: str) -> dict[str, Any]:
        """No request may fail."""
        while True:
            found = await self._call("GET", f"/api/v1/benchmarking/results/{job}")
            if found["status"] in ("completed", "failed", "cancelled"):
                return found
            await asyncio.sleep(0.1)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        pods = self._cluster.ready_pods(self._cluster.service("proctor-gateway"))
        url = f"http://{secrets.choice(pods).address}:8080{path}"
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.request(method, url, json=body) as response,
        ):
            assert response.status < 300, await response.text()
            return dict(await response.json())
