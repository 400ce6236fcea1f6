"""Every install that the chart is made for renders, by Helm 3 and 4, to objects that Kubernetes accepts."""

import json
import os
import re
from typing import Any

import pytest
import yaml

from tests.contract.deploy.rendered import containers, objects, pods
from tests.contract.deploy.settings import SETTINGS
from tests.fakes.thorough_cases import first_cases
from tests.harness import kubernetes_schemas as schemas
from tests.harness.helm import PACKAGES, lint, template

# Passwords of a trial differ from render to render, and Helm versions put other empty lines and comments.
NOISE = re.compile(r"(?m)^  [a-z-]+: [A-Za-z0-9+/]{43}=$|^\s*$\n|^# Source.*$\n")


def distinct_objects() -> list[dict[str, Any]]:
    """Of all settings; many are the same."""
    found = {json.dumps(each, sort_keys=True): each for name in SETTINGS for each in objects(name)}
    return list(found.values())


@first_cases(4, "name", SETTINGS)
def test_all_versions_of_helm_render_the_same(name: str) -> None:
    texts = {NOISE.sub("", template(SETTINGS[name], version)) for version in PACKAGES}
    assert len(texts) == 1


@pytest.mark.parametrize("version", PACKAGES)
def test_chart_lints_strictly(version: str) -> None:
    for name in ("trying-out", "production"):
        assert "0 chart(s) failed" in lint(SETTINGS[name], version)


@pytest.mark.parametrize("version", schemas.VERSIONS)
def test_objects_are_valid_strictly(version: str) -> None:
    own = [each for each in distinct_objects() if schemas.is_own(each)]
    assert len(own) > 100
    for each in own:
        schemas.validate_own(each, version)


def test_trying_out_needs_nothing_that_kind_and_k3s_lack() -> None:
    """Both have one default storage class for one node, no load balancer that is needed, and no operators."""
    made = objects("trying-out")
    assert all(schemas.is_own(each) for each in made)
    assert {each["spec"].get("type", "ClusterIP") for each in made if each["kind"] == "Service"} == {
        "ClusterIP"
    }
    claims = [
        claim["spec"] for each in made for claim in each.get("spec", {}).get("volumeClaimTemplates", ())
    ]
    claims += [each["spec"] for each in made if each["kind"] == "PersistentVolumeClaim"]
    assert claims
    assert all(claim["accessModes"] == ["ReadWriteOnce"] for claim in claims)
    assert not any("storageClassName" in claim for claim in claims)
    for _, pod in pods("trying-out"):
        assert not {"nodeSelector", "affinity", "runtimeClassName"} & pod["spec"].keys()
        for container in containers(pod):
            # An image that was loaded into the node is taken.
            assert container.get("imagePullPolicy", "IfNotPresent") == "IfNotPresent"
            assert not container["image"].endswith(":latest")
            assert "nvidia.com/gpu" not in container["resources"].get("limits", {})


def test_strict_validation_refuses_what_kubernetes_does_not_know() -> None:
    [service] = [each for each in objects("trying-out") if each["metadata"]["name"] == "proctor-gateway"][:1]
    with pytest.raises(schemas.Invalid, match="unheard"):
        schemas.validate_own({**service, "unheard": True}, "1.33")


@pytest.mark.skipif("PROCTOR_REFERENCE_DIR" not in os.environ, reason="PROCTOR_REFERENCE_DIR is not set")
def test_custom_resources_are_valid_by_their_own_definitions() -> None:
    """Certificate and LeaderWorkerSet by their documentation."""
    custom = {each["kind"]: each for each in distinct_objects() if not schemas.is_own(each)}
    assert custom.keys() == {
        *("ScaledObject", "TriggerAuthentication", "Cluster", "HTTPRoute", "PodMonitor", "PrometheusRule"),
        *("Certificate", "LeaderWorkerSet"),
    }
    for each in distinct_objects():
        if not schemas.is_own(each):
            schemas.validate_custom(each)
    for broken in custom.values():
        with pytest.raises(schemas.Invalid, match="unheard"):
            schemas.validate_custom({**broken, "spec": {**broken["spec"], "unheard": True}})


@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_pods_over_several_nodes_are_valid_pods(version: str) -> None:
    [group] = [each for each in objects("many-pools") if each["kind"] == "LeaderWorkerSet"]
    for part in ("leaderTemplate", "workerTemplate"):
        pod = group["spec"]["leaderWorkerTemplate"][part]
        metadata = {"name": part, **pod["metadata"]}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
        schemas.validate_own(document, version)


def test_each_key_of_a_secret_has_a_variable_of_its_own() -> None:
    """The scheduler tells by it which pools share a rate limit."""
    [file] = [each for each in objects("many-pools") if each["metadata"]["name"] == "proctor-pools"]
    pools = {pool["name"]: pool for pool in yaml.safe_load(file["data"]["pools.yaml"])["pools"]}
    variables = {name: pool["api_key_env"] for name, pool in pools.items() if "api_key_env" in pool}
    assert variables["openai"] == "PROVIDER_PROVIDER_KEYS_OPENAI"
    assert len(set(variables.values())) == len(variables) > 1
    for name, variable in variables.items():
        [worker] = [pod for found, pod in pods("many-pools") if found == f"proctor-worker-{name}"]
        [container] = worker["spec"]["containers"]
        assert f"{variable}_FILE" in {each["name"] for each in container["env"]}
