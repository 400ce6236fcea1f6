"""Properties of every pod and object that the chart makes."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from pydantic_settings import BaseSettings

from proctor.values.providers.pools_file import parse_pools
from services.backup.settings import BackupSettings
from services.gateway.settings import GatewaySettings
from services.results.settings import ResultsSettings
from services.scheduler.settings import SchedulerSettings
from services.worker.settings import WorkerSettings
from tests.contract.deploy.rendered import containers, of_kind, pods
from tests.contract.deploy.settings import SETTINGS
from tests.harness.helm import EXAMPLES, Setting, render

SERVICES: Mapping[str, type[BaseSettings]] = {
    "services.gateway": GatewaySettings,
    "services.scheduler": SchedulerSettings,
    "services.results": ResultsSettings,
    "services.worker": WorkerSettings,
    "services.backup.program": BackupSettings,
}
# Not read by the service itself.
OTHERS = {"PROCTOR_GATEWAY", "PROCTOR_API_KEY", "PROCTOR_ALLOW_PLAINTEXT_KEY"}
# What the standard "restricted" admits, and the chart uses.
VOLUMES = {"name", "configMap", "emptyDir", "persistentVolumeClaim", "secret"}


@pytest.mark.parametrize("name", SETTINGS)
def test_pods_are_admitted_where_only_restricted_ones_are(name: str) -> None:
    for _, pod in pods(name):
        own = pod["spec"]["securityContext"]
        assert own["runAsNonRoot"]
        assert own["runAsUser"] > 0
        assert own["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"}.intersection(pod["spec"])
        assert {kind for volume in pod["spec"].get("volumes", ()) for kind in volume} <= VOLUMES
        for container in containers(pod):
            security = container["securityContext"]
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert not security["allowPrivilegeEscalation"]
            assert security["readOnlyRootFilesystem"]


@pytest.mark.parametrize("name", SETTINGS)
def test_secrets_are_referenced_and_never_written(name: str) -> None:
    for _, pod in pods(name):
        for container in containers(pod):
            for variable in container.get("env", ()):
                is_secret = re.search(r"(PASSWORD|SECRET|TOKEN|API_KEYS?|PROOF_KEY|DSN)$", variable["name"])
                if is_secret and "$(" not in variable.get("value", ""):
                    assert "secretKeyRef" in variable["valueFrom"], variable["name"]
    secrets = [each["metadata"]["name"] for each in of_kind(name, "Secret")]
    assert all(secret.endswith("-trial") for secret in secrets)


@pytest.mark.parametrize("name", SETTINGS)
def test_variables_are_settings_that_the_services_read(name: str) -> None:
    for _, pod in pods(name):
        for container in pod["spec"]["containers"]:
            command = " ".join(container.get("command", ()))
            module = next((each for each in SERVICES if each in command), None)
            given = {each["name"] for each in container.get("env", ()) if each["name"].startswith("PROCTOR_")}
            if module is None:
                assert given <= OTHERS
                continue
            kind = SERVICES[module]
            known = {
                str(field.validation_alias or f"{kind.model_config['env_prefix']}{setting.upper()}")
                for setting, field in kind.model_fields.items()
            }
            assert given <= known, f"{name}: {module} does not read {sorted(given - known)}"


@pytest.mark.parametrize("name", SETTINGS)
def test_pools_file_is_one_that_the_services_read(name: str) -> None:
    [text] = [
        each["data"]["pools.yaml"] for each in of_kind(name, "ConfigMap") if "pools.yaml" in each["data"]
    ]
    pools = {pool.name for pool in parse_pools(text).pools}
    workers = {
        each["metadata"]["labels"]["app.kubernetes.io/component"].removeprefix("worker-")
        for each in of_kind(name, "Deployment", "LeaderWorkerSet")
        if "-worker-" in each["metadata"]["name"]
    }
    assert pools == workers


@pytest.mark.parametrize("name", SETTINGS)
def test_pods_are_given_longer_than_they_need_to_drain(name: str) -> None:
    for pod_name, pod in pods(name):
        for container in pod["spec"]["containers"]:
            env = {each["name"]: each.get("value", "") for each in container.get("env", ())}
            drains = [float(value) for key, value in env.items() if key.endswith("_DRAIN_SECONDS")]
            notice = float(env.get("PROCTOR_SHUTDOWN_DELAY_SECONDS", 0))
            if drains:
                assert pod["spec"]["terminationGracePeriodSeconds"] >= notice + drains[0] + 10, pod_name


@pytest.mark.parametrize("name", SETTINGS)
def test_liveness_asks_no_backend(name: str) -> None:
    """A gateway without its backends is not ready, and restarting it mends nothing."""
    for _, pod in pods(name):
        for container in pod["spec"]["containers"]:
            probe = container.get("livenessProbe")
            if probe is None:
                assert not any(
                    port for port in container.get("ports", ()) if port["name"] in ("grpc", "http")
                )
            else:
                assert "tcpSocket" in probe or probe["httpGet"]["path"] == "/healthz"
                assert probe["timeoutSeconds"] >= 3


@pytest.mark.parametrize("name", SETTINGS)
def test_disruption_budgets_never_hold_a_single_pod(name: str) -> None:
    for budget in of_kind(name, "PodDisruptionBudget"):
        [owner] = [
            each
            for each in of_kind(name, "Deployment")
            if each["metadata"]["name"] == budget["metadata"]["name"]
        ]
        assert owner["spec"].get("replicas", 2) > 1
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_selectors_find_exactly_their_pods() -> None:
    templates = dict(pods("many-pools"))
    for each in of_kind("many-pools", "Deployment"):
        wanted = each["spec"]["selector"]["matchLabels"].items()
        found = [name for name, pod in templates.items() if wanted <= pod["metadata"]["labels"].items()]
        assert found == [each["metadata"]["name"]]


def test_autoscaled_pool_starts_with_its_fewest_and_argo_leaves_it_out() -> None:
    def replicas(name: str) -> dict[str, int | None]:
        return {
            each["metadata"]["name"]: each["spec"].get("replicas")
            for each in of_kind(name, "Deployment")
            if "-worker-" in each["metadata"]["name"]
        }

    assert replicas("production") == {"proctor-worker-small": 0, "proctor-worker-large": 0}
    assert replicas("argo-cd") == {"proctor-worker-gpu": None}
    assert replicas("no-keda") == {"proctor-worker-gpu": 3}


def test_scaler_copies_the_number_of_workers_that_the_scheduler_names() -> None:
    scaled = {each["metadata"]["name"]: each["spec"] for each in of_kind("production", "ScaledObject")}
    spec = scaled["proctor-worker-small"]
    [trigger] = spec["triggers"]
    assert trigger["metricType"] == "AverageValue"
    assert trigger["metadata"] == {
        "scalerAddress": "proctor-scheduler.proctor.svc:8082",
        "pool": "small",
        "enableTLS": "true",
    }
    assert (spec["minReplicaCount"], spec["maxReplicaCount"], spec["cooldownPeriod"]) == (0, 16, 600)
    assert "fallback" not in spec


def test_pod_with_gpus_makes_room_before_its_successor_starts() -> None:
    workers = {each["metadata"]["name"]: each["spec"] for each in of_kind("many-pools", "Deployment")}
    assert workers["proctor-worker-nvidia"]["strategy"]["rollingUpdate"] == {
        "maxUnavailable": 1,
        "maxSurge": 0,
    }
    assert workers["proctor-worker-openai"]["strategy"]["rollingUpdate"] == {
        "maxUnavailable": 0,
        "maxSurge": 1,
    }
    [worker] = workers["proctor-worker-amd"]["template"]["spec"]["containers"]
    assert worker["resources"]["limits"] == {"amd.com/gpu": 2}


def test_digest_and_registry_name_the_image() -> None:
    images = {
        container["name"]: container["image"]
        for _, pod in pods("air-gapped")
        for container in pod["spec"]["containers"]
    }
    assert images["gateway"] == f"registry.internal/proctor/proctor-gateway@sha256:{'1' * 64}"
    assert images["scheduler"] == "registry.internal/proctor/proctor-scheduler:0.1.0"


def test_every_image_can_be_named_by_its_digest() -> None:
    digest = f"sha256:{'2' * 64}"
    trials = {
        part: {"trial": {"enabled": True, "image": f"{image}@{digest}"}}
        for part, image in (("postgres", "postgres:18"), ("nats", "nats:2.14-alpine"))
    }
    documents = render(Setting((EXAMPLES["trying-out"],), {"image": {"tag": digest}, **trials}))
    pods_of = [each["spec"]["template"]["spec"] for each in documents if "template" in each.get("spec", {})]
    images = {
        container["image"]
        for pod in pods_of
        for container in (*pod["containers"], *pod.get("initContainers", ()))
    }
    assert {"postgres:18", "nats:2.14-alpine"} <= {image.partition("@")[0] for image in images}
    assert all(image.endswith(f"@{digest}") for image in images), images


def test_changed_pool_restarts_its_own_workers_and_the_scheduler_alone() -> None:
    def checksums(values: Mapping[str, Any]) -> dict[str, str]:
        documents = render(Setting((EXAMPLES["many-pools"],), values))
        return {
            each["metadata"]["name"]: str(each["spec"]["template"]["metadata"].get("annotations"))
            for each in documents
            if each["kind"] == "Deployment"
        }

    def changed(values: Mapping[str, Any]) -> set[str]:
        before, after = checksums({}), checksums(values)
        return {name for name, text in before.items() if after[name] != text}

    pools = yaml.safe_load(EXAMPLES["many-pools"].read_text())["pools"]
    others, last = pools[:-1], pools[-1]
    assert changed({"pools": [*others, {**last, "concurrency": 3}]}) == {
        "proctor-scheduler",
        "proctor-worker-ollama",
    }
    assert changed({"pools": [*others, {**last, "max": 9}]}) == set()
    assert changed({"aliases": {"small": "vllm/Qwen/Qwen3-8B"}}) == {"proctor-scheduler"}


def test_pods_have_further_labels_which_replace_none_of_the_chart() -> None:
    """A workload identity of Azure is found by a label of the pod."""
    templates = dict(pods("argo-cd"))
    labels = templates["proctor-scheduler"]["metadata"]["labels"]
    assert labels["azure.workload.identity/use"] == "true"
    pool = {**yaml.safe_load(EXAMPLES["argo-cd"].read_text())["pools"][0]}
    given = {"team": "a", "app.kubernetes.io/component": "gateway"}
    made = render(Setting((EXAMPLES["argo-cd"],), {"pools": [{**pool, "podLabels": given}]}))
    [worker] = [
        each
        for each in made
        if each["metadata"]["name"] == "proctor-worker-gpu" and "template" in each["spec"]
    ]
    labels = worker["spec"]["template"]["metadata"]["labels"]
    assert labels["team"] == "a"
    assert labels["app.kubernetes.io/component"] == "worker-gpu"


def test_volumes_of_an_operator_are_mounted() -> None:
    templates = dict(pods("a Postgres that is verified"))
    for name in ("proctor-scheduler", "proctor-results"):
        assert "authority" in [each["name"] for each in templates[name]["spec"]["volumes"]]
        [container] = templates[name]["spec"]["containers"]
        assert "/etc/postgres" in [each["mountPath"] for each in container["volumeMounts"]]


def test_bounds_of_sandboxes_and_operators_are_settings() -> None:
    def env(name: str, pod: str) -> dict[str, str]:
        [container] = dict(pods(name))[pod]["spec"]["containers"]
        return {each["name"]: each.get("value", "") for each in container["env"]}

    found = env("sandboxes in pods", "proctor-worker-code")
    assert found["PROCTOR_WORKER_SANDBOX_MAX_CPUS"] == "2"
    assert found["PROCTOR_WORKER_SANDBOX_SLOTS"] == "8"
    assert "PROCTOR_WORKER_ROLLOUT_SLOTS" not in found
    assert env("a Postgres that is verified", "proctor-gateway")["PROCTOR_GATEWAY_OPERATORS"] == '["ann"]'


def test_route_leads_grpc_to_its_own_port() -> None:
    [route] = of_kind("air-gapped", "HTTPRoute")
    ports = [
        (rule["matches"][0].get("headers"), rule["backendRefs"][0]["port"]) for rule in route["spec"]["rules"]
    ]
    assert ports == [([{"name": "content-type", "value": "application/grpc"}], 8081), (None, 8080)]
