"""Wrong values are refused before anything is made, with a sentence that names them."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.fakes.bare_api_server import bare_api_server
from tests.harness.helm import EXAMPLES, HelmRefused, Setting, install_on, render

REMOTE: dict[str, Any] = {
    "name": "remote",
    "engine": "openai",
    "min": 1,
    "provider": {"name": "openai", "baseUrl": "https://api.openai.com/v1"},
}
VLLM: dict[str, Any] = {
    "name": "gpu",
    "engine": "vllm",
    "min": 1,
    "models": [{"name": "vllm/a", "path": "a"}],
}
BY_TEMPLATE: list[tuple[Mapping[str, Any], str]] = [
    ({"postgres": {"trial": {"enabled": False}}}, "No Postgres: set postgres.existing.secretName"),
    ({"postgres": {"existing": {"secretName": "dsn"}}}, "Several Postgres: set only one of"),
    ({"backup": {"enabled": True}}, "Backups need one place: set one of backup.url"),
    (
        {"backup": {"enabled": True, "url": "s3://b/backups"}},
        "A backup reaches no folder of the scheduler's pod: set objectStore.url",
    ),
    ({"nats": {"trial": {"enabled": False}}}, "No NATS: set nats.url or nats.trial.enabled"),
    ({"gateway": {"oidc": {"issuer": "https://login.example.org"}}}, "needs gateway.oidc.clientId"),
    (
        {"gateway": {"oidc": {"issuer": "https://login.example.org", "clientId": "proctor"}}},
        "With gateway.oidc.issuer nobody has a role",
    ),
    ({"nats": {"url": "nats://nats:4222"}}, "Several NATS: set only one of"),
    (
        {"nats": {"trial": {"enabled": False}, "url": "nats://user:word@nats:4222"}},
        "nats.url contains a user or password",
    ),
    (
        {"nats": {"passwords": {"secretName": "a"}, "credentials": {"secretName": "b"}}},
        "Two ways to log in to NATS",
    ),
    (
        {"nats": {"trial": {"enabled": False}, "url": "nats://nats:4222"}},
        "Whoever reaches nats.url may do everything there: set nats.passwords.secretName",
    ),
    (
        {
            "nats": {
                "trial": {"enabled": False},
                "url": "nats://nats:4222",
                "passwords": {"secretName": "nats"},
            }
        },
        "No key of dispatch proofs: set dispatchProofKey.secretName",
    ),
    (
        {
            "nats": {
                "trial": {"enabled": False},
                "url": "nats://nats:4222",
                "passwords": {"secretName": "nats"},
            },
            "dispatchProofKey": {"secretName": "proofs"},
        },
        "No key by which the gateway signs its calls: set callerKey.secretName",
    ),
    ({"gateway": {"allowAnonymous": False}}, "Nobody may call the gateway"),
    ({"gateway": {"service": {"type": "LoadBalancer"}}}, "gateway.service.type LoadBalancer opens it"),
    ({"gateway": {"service": {"type": "NodePort"}}}, "gateway.service.type NodePort opens it"),
    (
        {"pools": [{**REMOTE, "provider": {"name": "openai", "baseUrl": "https://ann:word@host/v1"}}]},
        "pool remote: provider.baseUrl contains a user or password",
    ),
    (
        {"allowedBaseUrls": ["https://host/v1", "https://ann:word@host/v1"]},
        r"allowedBaseUrls\[1\] contains a user or password",
    ),
    ({"traces": {"endpoint": "https://ann:word@host:4317"}}, "traces.endpoint contains a user or password"),
    (
        {"gateway": {"oidc": {"issuer": "https://ann@host", "clientId": "proctor", "defaultRole": "viewer"}}},
        "gateway.oidc.issuer contains a user or password",
    ),
    ({"objectStore": {"url": "s3://key:word@bucket"}}, "objectStore.url contains a user or password"),
    ({"scheduler": {"replicas": 2}}, "scheduler.replicas is above 1, and replicas share no folder"),
    (
        {
            "scheduler": {"replicas": 2},
            "objectStore": {"volume": {"size": "1Gi", "accessModes": ["ReadWriteOnce"]}},
        },
        "accessModes needs ReadWriteMany",
    ),
    ({"objectStore": {"url": "s3://a", "volume": {"size": "1Gi"}}}, "Two object stores"),
    (
        {"gateway": {"ingress": {"enabled": True}, "httpRoute": {"enabled": True}}},
        "Two ways to the gateway",
    ),
    ({"gateway": {"ingress": {"enabled": True}}}, "gateway.hosts is empty"),
    ({"tls": {"enabled": True}}, "gateway has no certificate: set tls.issuer.name .* or tls.secrets.gateway"),
    (
        {"tls": {"enabled": True, "secrets": {"gateway": "a", "scheduler": "b", "results": "c"}}},
        "nats has no certificate",
    ),
    ({"nats": {"tls": {"clientCertificates": True}}}, "nats.tls.clientCertificates needs certificates"),
    (
        {
            "postgres": {
                "trial": {"enabled": False},
                "cluster": {"enabled": True, "parameters": {"max_connections": "50"}},
            }
        },
        "max_connections is 50, and this release may open 76",
    ),
    (
        {"postgres": {"trial": {"enabled": False}, "cluster": {"enabled": True, "synchronous": 3}}},
        "postgres.cluster.synchronous is 3: of 3 instances at most 2",
    ),
    ({"pools": []}, "No pools: list at least one"),
    ({"pools": [VLLM, VLLM]}, "pools lists gpu twice"),
    ({"pools": [{**VLLM, "models": []}]}, "pool gpu has the engine vllm and no models"),
    ({"pools": [{**VLLM, "models": [{"name": "vllm/a"}]}]}, "model vllm/a needs path"),
    ({"pools": [{**VLLM, "models": [{"name": "vllm/a", "lora": "/a"}]}]}, "adapter vllm/a .lora. needs base"),
    (
        {"pools": [{**VLLM, "models": [{**VLLM["models"][0], "engineArgs": {"tensor_parallel_size": 4}}]}]},
        "model vllm/a needs 4 GPUs .* gpus × nodes is 0",
    ),
    (
        {"pools": [{"name": "remote", "engine": "openai", "min": 1}]},
        "pool remote has the engine openai and no provider",
    ),
    ({"pools": [{**REMOTE, "nodes": 2}]}, "only the engine vllm spans several nodes"),
    ({"pools": [{**REMOTE, "min": 3, "max": 2}]}, "pool remote: min is above max"),
    ({"pools": [{**REMOTE, "min": 0}]}, "pool remote would never have a worker"),
]
BY_SCHEMA: list[tuple[Mapping[str, Any], str]] = [
    ({"gatway": {}}, "gatway"),
    ({"gateway": {"replicas": 0}}, "/gateway/replicas"),
    ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
    ({"logLevel": "LOUD"}, "/logLevel"),
    ({"objectStore": {"url": "ftp://a"}}, "/objectStore/url"),
    ({"nats": {"streamReplicas": 2}}, "/nats/streamReplicas"),
    ({"pools": [{**REMOTE, "name": "Capital"}]}, "/pools/0/name"),
    ({"pools": [{**REMOTE, "engine": "llama"}]}, "/pools/0/engine"),
    ({"pools": [{**REMOTE, "gpu": 1}]}, "gpu"),
    ({"pools": [{**REMOTE, "provider": {"name": "openai", "apiKey": "secret"}}]}, "/pools/0/provider"),
    ({"runAsUser": 0}, "/runAsUser"),
    ({"scheduler": {"scratchSize": "much"}}, "/scheduler/scratchSize"),
    ({"tls": {"duration": "90 days"}}, "/tls/duration"),
    ({"pools": [{**REMOTE, "sandbox": {"engine": "docker"}}]}, "/pools/0/sandbox/engine"),
]


def refusal(values: Mapping[str, Any], **changes: Any) -> str:
    setting = Setting((EXAMPLES["trying-out"],), values, **changes)
    with pytest.raises(HelmRefused) as refused:
        render(setting)
    return str(refused.value)


@pytest.mark.parametrize(("values", "sentence"), BY_TEMPLATE)
def test_values_that_do_not_fit_together_are_refused(values: Mapping[str, Any], sentence: str) -> None:
    assert re.search(sentence, refusal(values))


@pytest.mark.parametrize(("values", "pointer"), BY_SCHEMA)
def test_values_of_a_wrong_form_are_refused_by_name(values: Mapping[str, Any], pointer: str) -> None:
    text = refusal(values)
    assert "values.schema.json" in text or "schema" in text
    assert pointer.lstrip("/") in text or pointer.replace("/", ".").lstrip(".") in text


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"keda": {"enabled": True}}, "keda.enabled needs KEDA in the cluster"),
        (
            {"postgres": {"trial": {"enabled": False}, "cluster": {"enabled": True}}},
            "postgres.cluster.enabled needs CloudNativePG",
        ),
        (
            {"metrics": {"monitors": {"enabled": True}}},
            "metrics.monitors.enabled needs the Prometheus operator",
        ),
        ({"pools": [{**VLLM, "nodes": 2}]}, r"pools\[\].nodes needs LeaderWorkerSet"),
        (
            {"tls": {"enabled": True, "issuer": {"name": "internal"}}},
            "tls.issuer.name needs cert-manager",
        ),
    ],
)
def test_kinds_that_the_cluster_lacks_are_named(values: Mapping[str, Any], sentence: str) -> None:
    assert re.search(sentence, refusal(values, kinds=()))


def test_kind_that_a_cluster_lacks_is_named_although_a_lookup_of_it_fails() -> None:
    """A rendering without a cluster looks nothing up."""
    with bare_api_server() as address, pytest.raises(HelmRefused) as refused:
        install_on(address, Setting((EXAMPLES["many-pools"],)))
    assert "pools[].nodes needs LeaderWorkerSet in the cluster" in str(refused.value)


def test_cluster_that_is_too_old_is_refused() -> None:
    assert "chart requires kubeVersion: >=1.29.0-0" in refusal({}, kubernetes="1.28.5")


def test_sandboxes_are_never_in_the_namespace_of_the_services() -> None:
    values = {
        "sandboxes": {"namespacePrefix": "team"},
        "pools": [{**REMOTE, "sandbox": {"engine": "kubernetes"}}],
    }
    refused = refusal(values, namespace="team-remote")
    assert "sandboxes of pool remote would be in team-remote, where Proctor itself is" in refused
