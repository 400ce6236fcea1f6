"""The chart with mTLS: rendered pods call each other, and NATS, by certificates that are renewed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from proctor.keda import externalscaler_pb2
from proctor.keda import externalscaler_pb2_grpc as externalscaler_grpc
from proctor.stack.supervision.probes import grpc_serves
from tests.fakes.callers import CALLER_KEY, GATEWAY
from tests.fakes.certificates import Authority
from tests.fakes.eventually import eventually
from tests.harness.cluster.pod import Pod, http_answers
from tests.harness.cluster.rendered_cluster import RenderedCluster, pod_addresses, rendered_cluster
from tests.harness.cluster.service_client import ServiceClient
from tests.harness.helm import EXAMPLES, Setting, render
from tests.harness.model_server_process import ModelServerProcess, model_server_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "openai/fake"
PORTS = {"scheduler": 8082, "results": 8083}
COMPONENTS = ("gateway", "scheduler", "results", "nats", "keda", "worker-fake")


def setting(server: ModelServerProcess) -> Setting:
    """One of everything, by certificates that an operator has made."""
    pool = {
        "name": "fake",
        "engine": "openai",
        "min": 1,
        "drainSeconds": 20,
        "provider": {
            "name": "openai",
            "baseUrl": server.url,
            "apiKey": {"secretName": "keys", "key": "fake"},
        },
    }
    values = {
        "tls": {"enabled": True, "secrets": {component: secret_of(component) for component in COMPONENTS}},
        "postgres": {"existing": {"secretName": ""}, "trial": {"enabled": True}},
        "shutdownDelaySeconds": 1,
        "keda": {"enabled": True},
        "callerKey": {"secretName": "caller-key"},
        "pools": [pool],
        "test": {"model": MODEL, "apiKey": {"secretName": "test-key", "key": "api-key"}},
    }
    return Setting((EXAMPLES["remote-only"],), values)


def secret_of(component: str) -> str:
    return f"certificate-of-{component}"


def name_of(component: str) -> str:
    return f"proctor-{component}.proctor.svc"


def issue(authority: Authority, folder: Path) -> dict[str, Mapping[str, str]]:
    """Secrets with certificates by the names that the documentation asks for."""
    made: dict[str, Mapping[str, str]] = {}
    for component in (*COMPONENTS, "stranger"):
        # What is not dialled by its name here is dialled by its address.
        address = (next(pod_addresses()),) if component == "nats" else ()
        authority.issue(folder / component, name_of(component), *address)
        made[secret_of(component)] = {file.name: file.read_text() for file in (folder / component).iterdir()}
    return made


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RenderedCluster]:
    secrets = {
        "keys": {"fake": "key-of-the-provider"},
        "proctor-api-keys": {"api-keys": '{"ann": "secret-key-of-ann"}'},
        "test-key": {"api-key": "secret-key-of-ann"},
        "caller-key": {"caller-key": CALLER_KEY},
        **issue(Authority(certificates / "authority"), certificates / "first"),
    }
    async with model_server_process() as server:
        folder = tmp_path_factory.mktemp("cluster")
        async with rendered_cluster(render(setting(server)), secrets, folder) as running:
            yield running


def channel_to(pod: Pod, component: str, folder: Path | None) -> grpc.aio.Channel:
    address = f"{pod.address}:{PORTS[component]}"
    if folder is None:
        return grpc.aio.insecure_channel(address)
    authorities, key, chain = ((folder / name).read_bytes() for name in ("ca.crt", "tls.key", "tls.crt"))
    credentials = grpc.ssl_channel_credentials(authorities, key, chain)
    # The test does not resolve the name of the Service.
    options = [("grpc.ssl_target_name_override", name_of(component))]
    return grpc.aio.secure_channel(address, credentials, options=options)


async def code_of_call(pod: Pod, component: str, folder: Path | None) -> grpc.StatusCode:
    """The code of a signed call by a caller with the certificate in `folder`; None: without TLS."""
    async with channel_to(pod, component, folder) as channel:
        path = "/proctor.v1.QueueService/GetQueue"
        if component == "results":
            path = "/proctor.v1.ResultsService/GetSummary"
        call: Any = channel.unary_unary(path)
        try:
            await call(b"", timeout=10, metadata=GATEWAY.signed(path, ()))
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


@pytest.mark.thorough
async def test_run_completes_over_mtls_alone(cluster: RenderedCluster) -> None:
    hook = cluster.make_hook("Pod")
    code = await asyncio.wait_for(hook.run(), 120)
    cluster.pods.remove(hook)
    assert code == 0, hook.log.read_text()


@pytest.mark.parametrize("component", PORTS)
async def test_only_the_components_that_call_a_service_may_call_it(
    cluster: RenderedCluster, certificates: Path, component: str
) -> None:
    [pod] = cluster.pods_of(component)
    reached = await code_of_call(pod, component, certificates / "first" / "gateway")
    assert reached not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED)
    for stranger in ("stranger", "worker-fake"):
        code = await code_of_call(pod, component, certificates / "first" / stranger)
        assert code is grpc.StatusCode.PERMISSION_DENIED, stranger
    assert await code_of_call(pod, component, None) is grpc.StatusCode.UNAVAILABLE
    assert await grpc_serves(f"{pod.address}:8084")


async def test_autoscaler_asks_by_a_certificate_of_its_own(
    cluster: RenderedCluster, certificates: Path
) -> None:
    [authentication] = [each for each in cluster.objects if each["kind"] == "TriggerAuthentication"]
    references = authentication["spec"]["secretTargetRef"]
    assert {each["name"] for each in references} == {secret_of("keda")}
    [pod] = cluster.pods_of("scheduler")
    request = externalscaler_pb2.ScaledObjectRef(scalerMetadata={"pool": "fake"})
    async with channel_to(pod, "scheduler", certificates / "first" / "keda") as channel:
        scaler: externalscaler_grpc.ExternalScalerAsyncStub
        scaler = externalscaler_grpc.ExternalScalerStub(channel)
        answer = await scaler.GetMetricSpec(request, timeout=10)
    assert [spec.metricName for spec in answer.metricSpecs] == ["workers"]
    # It calls nothing else.
    for component in PORTS:
        [pod] = cluster.pods_of(component)
        code = await code_of_call(pod, component, certificates / "first" / "keda")
        assert code is grpc.StatusCode.PERMISSION_DENIED, component


async def test_nats_asks_for_certificates(cluster: RenderedCluster) -> None:
    [pod] = cluster.pods_of("nats")
    reader, writer = await asyncio.open_connection(pod.address, 4222)
    greeting = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
    assert b'"tls_required":true' in greeting
    assert b'"tls_verify":true' in greeting


async def test_renewed_certificates_are_used_without_a_restart(
    cluster: RenderedCluster, certificates: Path
) -> None:
    """By another authority, as a kubelet puts them into the volumes of pods that run."""
    secrets = issue(Authority(certificates / "next authority"), certificates / "second")
    pods = {component: cluster.pods_of(component)[0] for component in ("gateway", *PORTS)}
    for component, pod in pods.items():
        for name, text in secrets[secret_of(component)].items():
            new = pod.volumes["tls"] / f".{name}"
            new.write_text(text)
            new.replace(pod.volumes["tls"] / name)

    async def only_new_ones_are_taken() -> bool:
        codes = [
            await code_of_call(pods[component], component, certificates / age / "gateway")
            for component in PORTS
            for age in ("first", "second")
        ]
        taken = [code is not grpc.StatusCode.UNAVAILABLE for code in codes]
        return taken == [False, True, False, True] and await http_answers(
            f"http://{pods['gateway'].address}:8080/readyz"
        )

    await eventually(only_new_ones_are_taken, "all three use the renewed certificates", 60)
    client = ServiceClient(cluster)
    order = {
        "project_id": 1,
        "suite": "starter",
        "limit": 5,
        "config": {"provider": "openai", "model": "fake"},
    }
    job = await client.post("/api/v1/benchmarking/run", order)
    found = await asyncio.wait_for(client.ask_until_over(job["job_id"]), 60)
    assert found["status"] == "completed"
    assert [pod.process.returncode for pod in pods.values() if pod.process] == [None] * 3
