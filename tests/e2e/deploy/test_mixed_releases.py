"""An upgrade and a rollback, pod by pod: two releases share schemas, streams and runs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.harness.cluster.mixed_releases import MixedReleases, mixed_releases
from tests.harness.cluster.rendered_cluster import RenderedCluster, rendered_cluster
from tests.harness.cluster.service_client import ServiceClient
from tests.harness.helm import EXAMPLES, Setting, render
from tests.harness.model_server_process import ModelServerProcess, model_server_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRETS = {
    "keys": {"fake": "key-of-the-provider"},
    "proctor-api-keys": {"api-keys": '{"ann": "secret-key-of-ann"}'},
}
COMPONENTS = ("results", "scheduler", "gateway", "worker-fake")


def setting(server: ModelServerProcess) -> Setting:
    provider = {
        "name": "openai",
        "baseUrl": server.url,
        "apiKey": {"secretName": "keys", "key": "fake"},
    }
    pool = {
        "name": "fake",
        "engine": "openai",
        "min": 1,
        "drainSeconds": 10,
        "provider": provider,
        "settings": {"ACK_WAIT_SECONDS": 4},
    }
    values = {
        "postgres": {"existing": {"secretName": ""}, "trial": {"enabled": True}},
        "gateway": {"replicas": 1},
        "scheduler": {"replicas": 1},
        "results": {"replicas": 1},
        "objectStore": {"volume": {"existingClaim": "objects"}},
        "shutdownDelaySeconds": 0,
        "pools": [pool],
    }
    return Setting((EXAMPLES["remote-only"],), values)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model_server() -> AsyncIterator[ModelServerProcess]:
    async with model_server_process() as server:
        yield server


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> MixedReleases:
    return mixed_releases(tmp_path_factory.mktemp("releases"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(
    model_server: ModelServerProcess, releases: MixedReleases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RenderedCluster]:
    """The earlier release, installed."""
    folder = tmp_path_factory.mktemp("mixed")
    objects = render(setting(model_server))
    async with rendered_cluster(objects, SECRETS, folder, releases.earlier) as running:
        yield running


async def test_run_goes_on_through_an_upgrade(
    cluster: RenderedCluster, model_server: ModelServerProcess, releases: MixedReleases
) -> None:
    before = await rows_of_migrations(cluster)
    await run_through(cluster, model_server, releases.later)
    assert await rows_of_migrations(cluster) > before


@pytest.mark.thorough
async def test_run_goes_on_through_a_rollback(
    cluster: RenderedCluster, model_server: ModelServerProcess, releases: MixedReleases
) -> None:
    """The earlier code starts on the schema that the later one has migrated."""
    await run_through(cluster, model_server, releases.earlier)


async def run_through(
    cluster: RenderedCluster, model_server: ModelServerProcess, release: Path | None
) -> None:
    """Replaces a pod of each service by one of the release, while a run executes."""
    client = ServiceClient(cluster)
    config = {"provider": "openai", "model": "fake"}
    order = {"project_id": 1, "suite": "starter", "rollouts": 2, "config": config}
    await model_server.control(latency_seconds=2)
    job = await client.post("/api/v1/benchmarking/run", order)
    cluster.release = release
    for component in COMPONENTS:
        [old] = cluster.pods_of(component)
        new = await cluster.replace(old)
        assert new.release == release
        assert old.process is not None
        assert old.process.returncode == 0, old.log.read_text()
    await model_server.control(latency_seconds=0)
    found = await asyncio.wait_for(client.ask_until_over(job["job_id"]), 90)
    assert found["status"] == "completed"
    assert found["progress"]["completed"] == found["progress"]["total"]
    assert found["failures"] == {}


async def rows_of_migrations(cluster: RenderedCluster) -> int:
    """Of both schemas: the newest migration may be of either."""
    counted = "SELECT (SELECT count(*) FROM scheduler.migrations) + (SELECT count(*) FROM results.migrations)"
    async with cluster.database() as connection:
        return int(await connection.fetchval(counted))
