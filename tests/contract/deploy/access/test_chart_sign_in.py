"""The chart's OpenID provider: the gateway reads its settings, and reaches it."""

from typing import Any

import pytest

from services.gateway.settings import GatewaySettings
from tests.contract.deploy.rendered import containers
from tests.harness.helm import EXAMPLES, Setting, render

OIDC: dict[str, Any] = {
    "issuer": "https://login.example.org:8443/realms/evals",
    "clientId": "proctor",
    "redirectUrl": "https://proctor.example.org/sign-in/callback",
    "roles": {"evals": "runner", "ops": "operator"},
    "clientSecret": {"secretName": "oidc"},
}


def test_gateway_gets_its_provider_and_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = {"oidc": OIDC, "apiKeys": {"secretName": ""}, "trustedProxies": ["10.0.0.0/8"]}
    policies = {"enabled": True, "cidrs": {"oidc": ["192.0.2.0/24"]}}
    objects = render(Setting((EXAMPLES["remote-only"],), {"gateway": gateway, "networkPolicies": policies}))
    found = {each["kind"]: each for each in objects if each["metadata"]["name"] == "proctor-gateway"}
    [container] = containers(found["Deployment"]["spec"]["template"])
    variables = {each["name"]: each for each in container["env"]}
    secret = variables["PROCTOR_GATEWAY_OIDC_CLIENT_SECRET"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "oidc", "key": "client-secret"}
    for name, each in variables.items():
        if name.startswith("PROCTOR_GATEWAY_") and "value" in each:
            monkeypatch.setenv(name, each["value"])
    settings = GatewaySettings()
    assert (settings.oidc_issuer, settings.oidc_client_id) == (OIDC["issuer"], "proctor")
    assert {group: role.value for group, role in settings.oidc_roles.items()} == OIDC["roles"]
    assert [str(each) for each in settings.trusted_proxies] == ["10.0.0.0/8"]
    egress = found["NetworkPolicy"]["spec"]["egress"]
    assert {"ports": [{"port": 8443}], "to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]} in egress
