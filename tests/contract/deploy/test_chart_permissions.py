"""Tokens, roles and certificates: each component has those that it needs, and no other."""

import pytest

from tests.contract.deploy.rendered import Document, containers, egress, of_kind, pods
from tests.contract.deploy.settings import SETTINGS
from tests.fakes.thorough_cases import first_cases
from tests.harness.helm import EXAMPLES, Setting, render


@first_cases(3, "name", SETTINGS)
def test_pods_get_no_token_but_where_it_is_asked_for(name: str) -> None:
    accounts = {each["metadata"]["name"] for each in of_kind(name, "ServiceAccount")}
    for pod_name, pod in pods(name):
        asked = name in ("production", "many-pools", "another namespace and name", "no network policies")
        asked = asked or name in ("a quiet cluster", "the emptiest pod first", "mutual TLS")
        asked = asked or name in ("sandboxes in pods", "backups in a bucket")
        makes_sandboxes = (name, pod_name) == ("sandboxes in pods", "proctor-worker-code")
        given = makes_sandboxes or (asked and pod_name.endswith(("-scheduler", "-backup")))
        assert pod["spec"]["automountServiceAccountToken"] is given
        assert not pod["spec"]["enableServiceLinks"]
        assert pod["spec"]["serviceAccountName"] in accounts


@pytest.mark.parametrize("name", ["mutual TLS", "mutual TLS by certificates that exist"])
def test_services_have_certificates_and_callers_have_names(name: str) -> None:
    secrets = {
        each["metadata"]["name"]: (each["spec"]["secretName"], each["spec"]["dnsNames"])
        for each in of_kind(name, "Certificate")
    }
    clients: dict[str, list[str]] = {}
    for pod_name, pod in pods(name):
        volumes = {each["name"]: each for each in pod["spec"].get("volumes", ())}
        for container in pod["spec"]["containers"]:
            env = {each["name"]: each.get("value", "") for each in container.get("env", ())}
            names = [
                each for each in env if each.startswith("PROCTOR_TLS_") and each != "PROCTOR_TLS_CLIENT_NAMES"
            ]
            assert len(names) == (3 if container["name"] in ("gateway", "scheduler", "results") else 0)
            if container["name"] not in ("postgres", "run"):
                given = secrets[pod_name][0] if secrets else volumes["tls"]["secret"]["secretName"]
                assert volumes["tls"]["secret"]["secretName"] == given
                assert {"name": "tls", "mountPath": "/etc/proctor/tls", "readOnly": True} in container[
                    "volumeMounts"
                ]
            if "PROCTOR_TLS_CLIENT_NAMES" in env:
                clients[pod_name] = env["PROCTOR_TLS_CLIENT_NAMES"].split(",")
    of_results = ["proctor-gateway.proctor.svc", "proctor-scheduler.proctor.svc"]
    of_scheduler = ["proctor-gateway.proctor.svc"]
    if name == "mutual TLS":
        of_scheduler.append("proctor-keda.proctor.svc=externalscaler.ExternalScaler")
        for component in ("gateway", "scheduler", "keda"):
            assert f"proctor-{component}.proctor.svc" in secrets[f"proctor-{component}"][1]
    else:
        assert secrets == {}
    assert clients == {"proctor-scheduler": of_scheduler, "proctor-results": of_results}


def test_probes_of_a_service_with_mtls_ask_the_port_without() -> None:
    templates = dict(pods("mutual TLS"))
    for name in ("proctor-scheduler", "proctor-results"):
        [container] = templates[name]["spec"]["containers"]
        env = {each["name"]: each.get("value", "") for each in container["env"]}
        prefix = f"PROCTOR_{name.removeprefix('proctor-').upper()}"
        assert env[f"{prefix}_HEALTH_ADDRESS"] == "0.0.0.0:8084"
        assert container["readinessProbe"]["grpc"] == container["startupProbe"]["grpc"] == {"port": 8084}
        assert container["livenessProbe"]["tcpSocket"] == {"port": 8084}


def test_autoscaler_calls_the_scheduler_by_its_own_certificate() -> None:
    [trigger] = of_kind("mutual TLS", "ScaledObject")[0]["spec"]["triggers"]
    [authentication] = of_kind("mutual TLS", "TriggerAuthentication")
    assert trigger["metadata"]["enableTLS"] == "true"
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
    references = authentication["spec"]["secretTargetRef"]
    assert {each["parameter"]: each["key"] for each in references} == {
        "caCert": "ca.crt",
        "tlsClientCert": "tls.crt",
        "tlsClientKey": "tls.key",
    }
    assert of_kind("argo-cd", "TriggerAuthentication", "Certificate") == []


def test_only_workers_of_pools_with_sandboxes_may_make_pods_and_only_there() -> None:
    name = "sandboxes in pods"
    assert of_kind("production", "Role", "RoleBinding", "Namespace") == []
    [role] = of_kind(name, "Role")
    [binding] = of_kind(name, "RoleBinding")
    [namespace] = of_kind(name, "Namespace")
    [subject] = binding["subjects"]
    assert {each["metadata"]["namespace"] for each in (role, binding)} == {namespace["metadata"]["name"]}
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    # Policies add up: who may make one may open the network of a sandbox.
    [of_policies] = [rule for rule in role["rules"] if "networkpolicies" in rule["resources"]]
    assert of_policies["verbs"] == ["get"]
    with_permissions = {
        pod_name
        for pod_name, pod in pods(name)
        if pod["spec"]["serviceAccountName"] == subject["name"] and subject["namespace"] == "proctor"
    }
    assert with_permissions == {"proctor-worker-code"}
    [container] = dict(pods(name))["proctor-worker-code"]["spec"]["containers"]
    env = {each["name"]: each.get("value", "") for each in container["env"]}
    assert env["PROCTOR_WORKER_SANDBOX_ENGINE"] == "kubernetes"
    assert env["PROCTOR_WORKER_SANDBOX_NAMESPACE"] == namespace["metadata"]["name"]
    api = {"ports": [{"port": 443}, {"port": 6443}]}
    assert api in egress(name, "worker-code")
    assert api not in egress(name, "worker-one")


def test_scheduler_may_patch_pods_only_where_it_marks_them() -> None:
    assert of_kind("production", "Role", "RoleBinding") == []
    [role] = of_kind("the emptiest pod first", "Role")
    [binding] = of_kind("the emptiest pod first", "RoleBinding")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    [subject] = binding["subjects"]
    templates = dict(pods("the emptiest pod first"))
    with_token = {name for name, pod in templates.items() if pod["spec"]["automountServiceAccountToken"]}
    assert with_token == {"proctor-scheduler"}
    assert templates["proctor-scheduler"]["spec"]["serviceAccountName"] == subject["name"]
    assert subject["namespace"] == "proctor"


def test_workers_of_a_pool_cannot_enter_sandboxes_of_another() -> None:
    pool = {"engine": "openai", "min": 1, "sandbox": {"engine": "kubernetes"}}
    provider = {"name": "openai", "baseUrl": "https://api.openai.com/v1"}
    pools = [{**pool, "name": name, "provider": provider} for name in ("a", "b")]
    made = render(Setting((EXAMPLES["trying-out"],), {"pools": pools}))
    rights = {
        (each["subjects"][0]["name"], each["metadata"]["namespace"], each["roleRef"]["name"])
        for each in made
        if each["kind"] == "RoleBinding"
    }
    roles = {
        (each["metadata"]["namespace"], each["metadata"]["name"]) for each in made if each["kind"] == "Role"
    }
    accounts = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["serviceAccountName"]
        for each in made
        if each["kind"] == "Deployment" and "-worker-" in each["metadata"]["name"]
    }
    names = {name: f"proctor-sandboxes-{name}" for name in ("a", "b")}
    assert accounts == {f"proctor-worker-{name}": account for name, account in names.items()}
    assert rights == {(account, account, account) for account in names.values()}
    assert roles == {(account, account) for account in names.values()}


def test_services_of_the_production_example_talk_over_tls() -> None:
    templates = dict(pods("production"))
    for service in ("gateway", "scheduler", "results"):
        [container] = templates[f"proctor-{service}"]["spec"]["containers"]
        env = {each["name"]: each.get("value", "") for each in container["env"]}
        assert env["PROCTOR_TLS_CERTIFICATE_FILE"] == "/etc/proctor/tls/tls.crt"
        if service != "gateway":
            assert env["PROCTOR_NATS_URL"].startswith("tls://")
            assert env["PROCTOR_NATS_CA_FILE"]


def test_code_of_tasks_is_off_until_the_environment_of_both_services_says_otherwise() -> None:
    given: list[Document] = [
        {"name": "PROCTOR_TASK_CODE", "value": "sandbox"},
        {"name": "PROCTOR_TASK_CODE_PACKAGES", "value": "/packages"},
    ]
    every = [variable for name in SETTINGS for _, pod in pods(name) for variable in _environment(pod)]
    assert "PROCTOR_TASK_CODE" not in {variable["name"] for variable in every}
    own: dict[str, list[Document]] = {
        "env": given,
        "volumes": [
            {"name": "packages", "persistentVolumeClaim": {"claimName": "packages", "readOnly": True}}
        ],
        "volumeMounts": [{"name": "packages", "mountPath": "/packages", "readOnly": True}],
    }
    values = {"scheduler": own, "results": own}
    made = render(Setting((EXAMPLES["trying-out"],), values))
    having = {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in made
        if each["kind"] == "Deployment" and given[0] in _environment(each["spec"]["template"])
    }
    assert having.keys() == {"proctor-scheduler", "proctor-results"}
    for pod in having.values():
        assert given[1] in _environment(pod)
        assert own["volumes"][0] in pod["spec"]["volumes"]
        assert own["volumeMounts"][0] in containers(pod)[0]["volumeMounts"]


def _environment(pod: Document) -> list[Document]:
    return [variable for container in containers(pod) for variable in container.get("env", ())]
