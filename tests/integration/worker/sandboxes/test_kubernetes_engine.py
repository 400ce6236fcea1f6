"""The kubernetes engine alone: pods that a restricted namespace admits, a policy, an API server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from kubernetes_asyncio.client import Configuration

from services.common.sandboxes.errors import CannotIsolate, CommandRefused, SandboxLost, SandboxNotOpened
from services.common.sandboxes.sandbox import Command, Network, SandboxSpec
from services.worker.sandboxes.kubernetes.container import exit_code_of
from services.worker.sandboxes.kubernetes.engine import KubernetesEngine, PodSettings
from services.worker.sandboxes.kubernetes.manifests import pod, policy
from tests.contract.deploy.settings import SETTINGS
from tests.fakes.thorough_cases import first_cases
from tests.harness.helm import render
from tests.integration.worker.sandboxes.cluster import Cluster, forbidden, invalid
from tests.integration.worker.sandboxes.conftest import SMALL, kubernetes_engine
from tests.integration.worker.sandboxes.podman import problem

needs_podman = pytest.mark.skipif(bool(problem()), reason=problem())


@pytest.fixture
async def pods(cluster: Cluster) -> AsyncIterator[KubernetesEngine]:
    made = kubernetes_engine(cluster)
    yield made
    await made.close()


@pytest.mark.parametrize("network", list(Network))
@pytest.mark.parametrize("runtime_class", ["", "gvisor"])
def test_a_pod_is_admitted_by_the_schemas_and_by_a_restricted_namespace(
    network: Network, runtime_class: str
) -> None:
    spec = replace(SMALL, network=network, writable=("/logs",), labels={"run": "one"})
    order = pod(spec, "proctor-sandbox-1", "tasks:1", "python:1", runtime_class)
    assert invalid(order) == ""
    assert forbidden(order["spec"]) == ""
    assert order["spec"].get("runtimeClassName", "") == runtime_class
    names = [each["name"] for each in order["spec"]["containers"]]
    assert names == (["sandbox", "relay"] if network is Network.MODEL else ["sandbox"])
    assert order["spec"]["automountServiceAccountToken"] is False


def test_the_policy_selects_sandboxes_and_allows_nothing() -> None:
    assert invalid(policy()) == ""
    assert policy()["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }


@pytest.mark.parametrize(
    ("broken", "names"),
    [
        ({"hostNetwork": True}, "host namespaces"),
        ({"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}, "volume types"),
        ({"securityContext": {"runAsUser": 0}}, "runAsNonRoot"),
    ],
)
def test_the_fake_refuses_what_a_restricted_namespace_refuses(broken: dict[str, object], names: str) -> None:
    order = pod(SandboxSpec(), "one", "image", "image", "")
    assert names in forbidden({**order["spec"], **broken})
    assert "podd" in invalid({**order, "podd": 1})


@needs_podman
async def test_an_image_that_cannot_be_pulled_is_named_and_its_pod_removed(cluster: Cluster) -> None:
    engine = kubernetes_engine(cluster, "localhost/no-such:image")
    with pytest.raises(SandboxNotOpened, match="ErrImagePull: no image localhost/no-such:image"):
        await engine.open(SMALL)
    await engine.close()
    assert cluster.pods == {}


@needs_podman
async def test_a_policy_of_another_is_no_policy(cluster: Cluster, pods: KubernetesEngine) -> None:
    other = policy()
    other["spec"]["egress"] = [{}]
    cluster.policies["proctor-sandboxes"] = other
    with pytest.raises(CannotIsolate, match="sandboxes/proctor-sandboxes is not Proctor's; delete it"):
        await pods.open(SMALL)
    del cluster.policies["proctor-sandboxes"]
    sandbox = await pods.open(SMALL)
    await sandbox.close()
    assert cluster.policies["proctor-sandboxes"] == policy()


def of_the_chart() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rules of the role of workers that make sandboxes, and the policy of their namespace."""
    made = render(SETTINGS["sandboxes in pods"])
    [role] = [each for each in made if each["kind"] == "Role"]
    [found] = [
        each
        for each in made
        if each["kind"] == "NetworkPolicy" and "-sandboxes-" in each["metadata"].get("namespace", "")
    ]
    return role["rules"], found


def test_the_policy_of_the_chart_is_the_one_that_workers_look_for() -> None:
    _, found = of_the_chart()
    assert found["metadata"]["name"] == policy()["metadata"]["name"]
    assert found["spec"] == policy()["spec"]


@needs_podman
async def test_the_permissions_of_the_chart_are_enough(cluster: Cluster, pods: KubernetesEngine) -> None:
    cluster.rules, cluster.policies["proctor-sandboxes"] = of_the_chart()
    sandbox = await pods.open(SMALL)
    assert (await sandbox.run(Command(("echo", "done")))).text == "done\n"
    await sandbox.close()
    assert await pods.sweep() == 0
    assert cluster.pods == {}


@needs_podman
@first_cases(1, "resource", ["networkpolicies", "pods", "pods/exec", "pods/attach"])
async def test_without_one_of_them_a_sandbox_is_not_opened_or_not_used(
    cluster: Cluster, pods: KubernetesEngine, resource: str
) -> None:
    rules, cluster.policies["proctor-sandboxes"] = of_the_chart()
    cluster.rules = [
        {**rule, "resources": [each for each in rule["resources"] if each != resource]} for rule in rules
    ]

    async def use() -> None:
        sandbox = await pods.open(SMALL)
        try:
            await sandbox.run(Command(("true",)))
        finally:
            await sandbox.close()

    with pytest.raises((CannotIsolate, SandboxNotOpened, SandboxLost), match=r"cannot|refuses"):
        await use()


@needs_podman
async def test_a_worker_may_not_make_a_policy(cluster: Cluster, pods: KubernetesEngine) -> None:
    """With another one it could open the network of its sandboxes: rules of policies add up."""
    cluster.rules, _ = of_the_chart()
    with pytest.raises(CannotIsolate, match="cannot create resource networkpolicies"):
        await pods.open(SMALL)


@needs_podman
async def test_a_pod_that_is_deleted_loses_its_sandbox(cluster: Cluster, pods: KubernetesEngine) -> None:
    sandbox = await pods.open(SMALL)
    await cluster._remove(next(iter(cluster.pods)))
    with pytest.raises(SandboxLost):
        await sandbox.run(Command(("true",)))
    await sandbox.close()


@needs_podman
async def test_pods_that_have_ended_are_swept_and_others_stay(
    cluster: Cluster, pods: KubernetesEngine
) -> None:
    kept, ended = await pods.open(SMALL), await pods.open(SMALL)
    first, second = cluster.pods
    await cluster.pods[second].containers["sandbox"].kill()
    with pytest.raises(SandboxLost):
        await ended.run(Command(("true",)))
    async with asyncio.timeout(30):
        while not await pods.sweep():
            pass
    assert list(cluster.pods) == [first]
    assert (await kept.run(Command(("echo", "kept")))).text == "kept\n"


@needs_podman
async def test_a_pod_has_one_model_port(pods: KubernetesEngine) -> None:
    sandbox = await pods.open(SMALL)
    listening = await sandbox.model_port(8080)
    with pytest.raises(CommandRefused, match="one model port"):
        await sandbox.model_port(8081)
    listening.close()


async def test_an_api_server_that_is_away_is_named() -> None:
    async def configure() -> Configuration:
        return Configuration(host="http://127.0.0.1:9")

    engine = KubernetesEngine(PodSettings("sandboxes", "image"), configure)
    isolation = await engine.check()
    await engine.close()
    assert isolation.problem.startswith("the API server at http://127.0.0.1:9 does not answer")


async def test_without_a_cluster_the_engine_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", "/nowhere")
    engine = KubernetesEngine(PodSettings("sandboxes", "image"))
    isolation = await engine.check()
    assert isolation.problem == "there is no cluster: the worker runs in no pod, and has no kubeconfig."


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (b'{"status": "Success"}', 0),
        (b'{"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}', 7),
        (b'{"status": "Failure", "reason": "InternalError"}', 137),
        (b"no JSON", 137),
    ],
)
def test_the_code_of_a_command_is_read_of_its_status(status: bytes, code: int) -> None:
    assert exit_code_of(status) == code
