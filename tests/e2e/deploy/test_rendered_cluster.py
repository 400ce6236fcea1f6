"""The rendered chart, started: pods as processes, and runs through rendered Services."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from services.results.settings import ResultsSettings
from services.scheduler.settings import SchedulerSettings
from tests.contract.deploy.test_postgres_connections import pooled
from tests.fakes.eventually import eventually
from tests.fakes.trace_collector import TraceCollector, trace_collector
from tests.harness.cluster.pod import Pod
from tests.harness.cluster.rendered_cluster import RenderedCluster, rendered_cluster
from tests.harness.cluster.service_client import ServiceClient
from tests.harness.helm import EXAMPLES, Setting, render
from tests.harness.model_server_process import ModelServerProcess, model_server_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCS = Path(__file__).parents[3] / "docs" / "reference"
_METRIC = re.compile(r"^\| `(proctor_\w+)`", re.MULTILINE)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
SUBMIT = "proctor-scheduler proctor.v1.SchedulerService/SubmitRun"
EDGES = {
    ("proctor-gateway POST /api/v1/benchmarking/run", SUBMIT),
    (SUBMIT, "proctor-scheduler run"),
    ("proctor-scheduler run", "proctor-scheduler send shards"),
    ("proctor-scheduler send shards", "proctor-worker process shard"),
    ("proctor-worker process shard", "proctor-results record outcomes"),
    ("proctor-scheduler run", "proctor-results proctor.v1.RunRecordService/CloseRun"),
}
MODEL = "openai/fake"
ROLLOUTS = 10


def setting(server: ModelServerProcess, collector: TraceCollector) -> Setting:
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
        "shutdownDelaySeconds": 1,
        "metrics": {"enabled": True},
        "traces": {"endpoint": collector.endpoint, "share": 1},
        # Spans are exported soon.
        "extraEnv": [{"name": "OTEL_BSP_SCHEDULE_DELAY", "value": "200"}],
        "pools": [pool],
        "test": {"model": MODEL, "apiKey": {"secretName": "test-key", "key": "api-key"}},
    }
    return Setting((EXAMPLES["remote-only"],), values)


def order_of(*, rollouts: int) -> dict[str, object]:
    config = {"provider": "openai", "model": "fake"}
    return {"project_id": 1, "suite": "starter", "rollouts": rollouts, "config": config}


SECRETS = {
    "keys": {"fake": "key-of-the-provider\n"},
    "proctor-api-keys": {"api-keys": '{"ann": "secret-key-of-ann"}'},
    "test-key": {"api-key": "secret-key-of-ann"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model_server() -> AsyncIterator[ModelServerProcess]:
    async with model_server_process() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def collector() -> AsyncIterator[TraceCollector]:
    async with trace_collector() as collecting:
        yield collecting


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(
    model_server: ModelServerProcess, collector: TraceCollector, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RenderedCluster]:
    objects = render(setting(model_server, collector))
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


async def test_a_run_over_rest_completes(cluster: RenderedCluster) -> None:
    client = ServiceClient(cluster)
    job = await client.post("/api/v1/benchmarking/run", order_of(rollouts=1))
    assert (await client.ask_until_over(job["job_id"]))["status"] == "completed"


@pytest.mark.thorough
async def test_run_completes_while_a_pod_of_each_service_is_replaced(
    cluster: RenderedCluster, model_server: ModelServerProcess
) -> None:
    client = ServiceClient(cluster)
    await model_server.control(latency_seconds=3)
    job = await client.post("/api/v1/benchmarking/run", order_of(rollouts=ROLLOUTS))
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


async def test_every_service_counted_what_happened(cluster: RenderedCluster) -> None:
    """After the runs above."""
    documented = set(_METRIC.findall((DOCS / "metrics.md").read_text()))
    samples: list[Figure] = []

    async def are_workers_counted() -> bool:
        pods = [pod for pod in cluster.pods if not pod.name.startswith("proctor-nats")]
        texts = await asyncio.gather(*map(metrics_of, pods))
        samples[:] = [sample for text in texts for sample in parsed(text)]
        return total("proctor_pool_workers", pool="fake", state="ready") >= 2

    def total(name: str, **labels: str) -> float:
        found = [each for each in samples if each.name == name and labels.items() <= each.labels.items()]
        assert found, name
        return sum(each.value for each in found)

    await eventually(are_workers_counted, "both workers are counted")
    names = {sample.family for sample in samples if sample.family.startswith("proctor_")}
    assert names <= documented
    # What the old pods counted is gone with them.
    assert 100 <= total("proctor_samples_total", pool="fake", result="answered") <= 100 * (ROLLOUTS + 1) * 5
    assert total("proctor_outcomes_total", result="recorded") >= 100
    assert total("proctor_tokens_total", pool="fake", kind="completion") > 0
    assert total("proctor_scheduler_leading") == 1
    assert total("proctor_stream_limit_bytes", stream="WORK_fake") > 0
    assert total("proctor_rpc_duration_seconds_count", code="OK") > 0
    assert total("proctor_http_request_duration_seconds_count", status="200") > 0
    assert total("proctor_nats_connected") == 6
    pools = pooled(SchedulerSettings, {}) + pooled(ResultsSettings, {})
    assert total("proctor_postgres_connections", state="limit") == 2 * pools  # as the chart computes
    assert total("proctor_backend_ready") == 4


async def test_no_label_holds_a_run_a_user_or_a_path(cluster: RenderedCluster) -> None:
    """A label with as many values as there are runs or users would fill the memory of Prometheus."""
    texts = await asyncio.gather(*(metrics_of(pod) for pod in cluster.pods_of("gateway")))
    routes = {each.labels["route"] for text in texts for each in parsed(text) if "route" in each.labels}
    assert "/api/v1/benchmarking/results/{job_id}" in routes
    values = {value for text in texts for each in parsed(text) for value in each.labels.values()}
    assert not [value for value in values if _ID.search(value) or value == "ann"]


async def test_one_order_is_one_trace_through_all_services(
    cluster: RenderedCluster, collector: TraceCollector
) -> None:
    client = ServiceClient(cluster)
    config = {"provider": "openai", "model": "fake"}
    order = {"project_id": 1, "suite": "starter", "limit": 5, "config": config}
    collector.spans.clear()
    job = await client.post("/api/v1/benchmarking/run", order)
    found = await asyncio.wait_for(client.ask_until_over(job["job_id"]), 60)
    assert found["status"] == "completed"

    await eventually(
        lambda: collector.edges_of("POST /api/v1/benchmarking/run") >= EDGES,
        "all edges of the trace have come",
    )
    call = next(each for each in collector.spans if each.name.endswith(" fake"))
    assert {"gen_ai.request.model", "gen_ai.provider.name", "gen_ai.usage.output_tokens"} <= call.attributes


async def metrics_of(pod: Pod) -> str:
    """By the port that a monitor finds."""
    [container] = pod.spec["containers"]
    [port] = [each["containerPort"] for each in container["ports"] if each["name"] == "metrics"]
    url = f"http://{pod.address}:{port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        return await response.text()


@dataclass(frozen=True)
class Figure:
    family: str
    name: str
    labels: Mapping[str, str]
    value: float


def parsed(text: str) -> list[Figure]:
    return [
        Figure(
            f"{family.name}_total" if family.type == "counter" else family.name,
            sample.name,
            sample.labels,
            sample.value,
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        # When each series of a counter began.
        if not sample.name.endswith("_created")
    ]
