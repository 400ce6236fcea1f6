"""Network policies name every connection that the services need, and no other."""

from tests.contract.deploy.rendered import egress, of_kind, pods
from tests.harness.helm import EXAMPLES, Setting, render


def test_workers_reach_nats_and_their_provider_alone() -> None:
    for name in ("production", "many-pools", "remote-only", "trying-out"):
        for policy in of_kind(name, "NetworkPolicy"):
            if "-worker-" not in policy["metadata"]["name"]:
                continue
            ports = {
                port["port"] for edge in policy["spec"]["egress"] or () for port in edge.get("ports", ())
            }
            assert ports <= {53, 80, 443, 4222, 4317, 11434}, policy["metadata"]["name"]
            assert 5432 not in ports


def test_worker_reaches_the_hub_only_where_a_model_is_loaded_from_there() -> None:
    hub = {"ports": [{"port": 443}]}
    for name, component in (("production", "worker-small"), ("no-keda", "worker-gpu")):
        assert hub in egress(name, component), name
    for name, component in (("air-gapped", "worker-gpu"), ("many-pools", "worker-nodes")):
        assert hub not in egress(name, component), name


def test_scheduler_reaches_the_servers_by_which_a_cloud_gives_it_an_identity() -> None:
    def addresses(name: str) -> set[str]:
        return {
            peer["ipBlock"]["cidr"]
            for edge in egress(name, "scheduler")
            for peer in edge.get("to", ())
            if "ipBlock" in peer
        }

    assert addresses("many-pools") >= {"169.254.169.252/32", "169.254.169.254/32"}
    assert addresses("production") >= {"169.254.170.23/32"}
    assert addresses("argo-cd") == {"169.254.20.10/32"}  # the cache of names


def test_pod_of_helm_test_reaches_a_gateway_that_is_closed_to_others() -> None:
    only = [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]
    made = render(Setting((EXAMPLES["trying-out"],), {"networkPolicies": {"gatewayFrom": only}}))
    [policy] = [
        each
        for each in made
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "proctor-gateway"
    ]
    [test] = [each["metadata"]["labels"] for each in made if each["kind"] == "Pod"]
    first, second = policy["spec"]["ingress"][0]["from"]
    assert first == only[0]
    assert second["podSelector"]["matchLabels"].items() <= test.items()


def test_all_servers_of_nats_are_reached_by_their_ports() -> None:
    values = {"nats": {"url": "nats://a:4222, nats://b:4333,nats://c"}}
    made = render(Setting((EXAMPLES["no-keda"],), values))
    [policy] = [
        each
        for each in made
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "proctor-results"
    ]
    assert {"ports": [{"port": 4222}, {"port": 4333}]} in policy["spec"]["egress"]


def test_every_pod_has_a_policy_and_every_policy_selects_a_pod() -> None:
    for name in ("trying-out", "production", "many-pools"):
        selectors = [each["spec"]["podSelector"]["matchLabels"] for each in of_kind(name, "NetworkPolicy")]
        templates = [
            pod["metadata"]["labels"] for pod_name, pod in pods(name) if "starter-run" not in pod_name
        ]
        for selector in selectors:
            assert any(selector.items() <= labels.items() for labels in templates), selector
        for labels in templates:
            assert any(selector.items() <= labels.items() for selector in selectors), labels


def test_no_pod_in_the_namespace_of_sandboxes_has_a_network_whatever_its_labels() -> None:
    pool = {"name": "code", "engine": "vllm", "min": 1, "models": [{"name": "vllm/a", "path": "a"}]}
    sandbox = {"engine": "kubernetes", "images": ["registry.example.org/tasks/", "python"]}
    made = render(Setting((EXAMPLES["trying-out"],), {"pools": [{**pool, "sandbox": sandbox}]}))
    named = {(each["kind"], each["metadata"]["name"]): each for each in made}
    policy, quota = named["NetworkPolicy", "proctor-sandboxes"], named["ResourceQuota", "proctor-sandboxes"]
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert quota["metadata"]["namespace"] == policy["metadata"]["namespace"] == "proctor-sandboxes-code"
    assert quota["spec"]["hard"] == {"pods": "500"}
    worker = named["Deployment", "proctor-worker-code"]["spec"]["template"]["spec"]
    allowed = {"name": "PROCTOR_WORKER_SANDBOX_IMAGES", "value": "registry.example.org/tasks/,python"}
    assert allowed in worker["containers"][0]["env"]


def test_servers_outside_of_the_release_are_reached_at_listed_addresses_alone() -> None:
    cidrs = {"nats": ["10.0.1.0/24"], "postgres": ["10.0.2.0/24"], "objects": ["fd00::/8"]}
    pool = {"name": "code", "engine": "openai", "min": 1, "cidrs": ["203.0.113.0/24"]}
    provider = {"name": "openai", "baseUrl": "https://api.openai.com/v1"}
    values = {
        "networkPolicies": {"cidrs": {**cidrs, "apiServer": ["10.0.0.1/32"], "traces": ["10.0.3.0/24"]}},
        "traces": {"endpoint": "http://collector.example.org:4317"},
        "objectStore": {"url": "az://bucket", "volume": {"existingClaim": ""}},
        "metrics": {"enabled": False},
        "keda": {"enabled": True, "deletionCosts": {"enabled": True}},
        "pools": [{**pool, "provider": provider, "sandbox": {"engine": "kubernetes"}}],
    }
    policies = {
        each["metadata"]["name"]: each["spec"]["egress"]
        for each in render(Setting((EXAMPLES["no-keda"],), values))
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] != "proctor-sandboxes"
    }
    listed = {
        name: {peer["ipBlock"]["cidr"] for edge in rules for peer in edge["to"] if "ipBlock" in peer}
        for name, rules in policies.items()
    }
    dns, traces = "169.254.20.10/32", "10.0.3.0/24"
    assert listed["proctor-worker-code"] == {dns, traces, "10.0.1.0/24", "203.0.113.0/24", "10.0.0.1/32"}
    stores = {dns, traces, "10.0.1.0/24", "10.0.2.0/24", "fd00::/8"}
    assert listed["proctor-scheduler"] == stores | {"10.0.0.1/32"}
    assert listed["proctor-results"] == stores
    # A rule without `to` is one for any address.
    assert all("to" in edge for edge in policies["proctor-worker-code"])
