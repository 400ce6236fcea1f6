"""The API server of a cluster, as far as a scheduler uses it: TLS, tokens, roles, and patched pods."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fakes.certificates import make_certificate, tls_in_front_of

TOKEN = "token-of-the-service-account"
NAMESPACE = "proctor"


@dataclass
class KubernetesApi:
    """`rules` are those of the role of the account. A pod has its annotations."""

    rules: Sequence[Mapping[str, Sequence[str]]]
    pods: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    url: str = ""
    # What is mounted into a pod with a token.
    account: Path = Path()

    async def patch(self, request: web.Request) -> web.Response:
        pod = request.match_info["pod"]
        self.calls.append(f"{request.method} {request.path}")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        if request.match_info["namespace"] != NAMESPACE or not self._allows("patch", "pods"):
            return web.Response(status=403)
        if request.content_type != "application/merge-patch+json":
            return web.Response(status=415)
        if pod not in self.pods:
            return web.Response(status=404)
        body: dict[str, Any] = await request.json()
        assert body.keys() == {"metadata"}, "nothing but annotations is patched"
        assert body["metadata"].keys() == {"annotations"}, "nothing but annotations is patched"
        self.pods[pod] |= body["metadata"]["annotations"]
        return web.json_response({"kind": "Pod"})

    def _allows(self, verb: str, resource: str) -> bool:
        return any(verb in rule["verbs"] and resource in rule["resources"] for rule in self.rules)

    def scale_down(self, count: int) -> list[str]:
        """The ready pods that a ReplicaSet deletes: those with the lowest cost, then the newest.

        https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
        """
        newest_first = reversed(list(self.pods))
        cost = "controller.kubernetes.io/pod-deletion-cost"
        chosen = sorted(newest_first, key=lambda pod: int(self.pods[pod].get(cost, 0)))[:count]
        for pod in chosen:
            del self.pods[pod]
        return chosen


@asynccontextmanager
async def kubernetes_api(
    folder: Path, rules: Sequence[Mapping[str, Sequence[str]]]
) -> AsyncIterator[KubernetesApi]:
    """`folder` becomes what a pod has mounted."""
    api = KubernetesApi(rules, account=folder)
    make_certificate(folder / "ca.pem", folder / "key.pem")
    (folder / "ca.crt").write_bytes((folder / "ca.pem").read_bytes())
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "namespace").write_text(NAMESPACE)
    app = web.Application()
    app.router.add_patch("/api/v1/namespaces/{namespace}/pods/{pod}", api.patch)
    async with (
        TestServer(app) as server,
        tls_in_front_of(f"127.0.0.1:{server.port}", folder, ["http/1.1"]) as address,
    ):
        api.url = f"https://{address}"
        yield api
