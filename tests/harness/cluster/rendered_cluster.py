"""A rendered chart as processes on this machine: Services by a name server, pods by addresses of loopback.

Each pod has an address of its own in 127.0.0.0/8 and listens on the ports that the chart names. A headless
Service is resolved by a name server to the addresses of its ready pods, as in a cluster; any other one to one
ready pod.
Postgres is a real server in place of its image; everything else is the rendered command.
"""

import asyncio
import itertools
import os
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from tests.fakes.name_server import NameServer, name_server
from tests.harness.cluster.pod import Pod, PodContext, Resolve, template_of
from tests.harness.cluster.volumes import Stores
from tests.harness.servers import RunningServer, postgres_server

# What callers dial over gRPC; these names reach the name server.
_DIALLED = ("PROCTOR_SCHEDULER_ADDRESS", "PROCTOR_RESULTS_ADDRESS")


def pod_addresses() -> Iterator[str]:
    """Those of the pods of this process's cluster, in the order in which they are made; NATS is first."""
    base = random.Random(os.getpid()).randrange(2, 250)
    return (f"127.{base}.{third}.{last}" for third in range(256) for last in range(2, 250))


@dataclass
class RenderedCluster(Resolve):
    """`objects` of one release; `postgres` answers for the Service of the same name."""

    objects: Sequence[dict[str, Any]]
    postgres: RunningServer
    names: NameServer
    names_port: int
    context: PodContext = field(init=False)
    pods: list[Pod] = field(default_factory=list)
    # The code of pods that are made from now on; None: today's.
    release: Path | None = None

    def __post_init__(self) -> None:
        self._addresses = pod_addresses()
        self._numbers = itertools.count(1)
        self._release = self._of_kind("Service")[0]["metadata"]["labels"]["app.kubernetes.io/instance"]

    def __call__(self, variable: str, value: str) -> str:
        for service in self._of_kind("Service"):
            name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
            if f"{name}:" not in value:
                continue
            if variable in _DIALLED:
                assert service["spec"].get("clusterIP") == "None", f"{name} pins its callers to one pod"
                return f"dns://127.0.0.1:{self.names_port}/{value}"
            if name.startswith(f"{self._release}-postgres."):
                return value.replace(
                    f"{name}:5432", self.postgres.address.rpartition("@")[2].partition("/")[0]
                )
            return value.replace(name, self.ready_pods(service)[0].address)
        return value

    def ready_pods(self, service: Mapping[str, Any]) -> list[Pod]:
        wanted = service["spec"]["selector"].items()
        return [pod for pod in self.pods if pod.is_ready and wanted <= pod.labels.items()]

    def service(self, name: str) -> Mapping[str, Any]:
        [found] = [each for each in self._of_kind("Service") if each["metadata"]["name"] == name]
        return found

    async def apply(self) -> None:
        """Starts what an install makes. Services that need others wait for them, as pods do."""
        await self._start_all("StatefulSet")
        await self._start_all("Deployment")

    async def replace(self, pod: Pod) -> Pod:
        """A rolling update of one pod: the new one is ready before the old one is stopped."""
        new = self._make(pod.name.rpartition("-")[0], pod.template)
        await new.start()
        self._publish()
        await self.remove(pod)
        return new

    async def remove(self, pod: Pod) -> int:
        """A pod that is stopped leaves its Services at once."""
        self.pods.remove(pod)
        self._publish()
        return await pod.stop()

    def pods_of(self, component: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.labels["app.kubernetes.io/component"] == component]

    def make_hook(self, kind: str) -> Pod:
        """The pod of a hook, such as that of `helm test`."""
        [document] = self._of_kind(kind)
        return self._make(document["metadata"]["name"], template_of(document))

    @asynccontextmanager
    async def database(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection of the test's own."""
        connection = await asyncpg.connect(self.postgres.address, timeout=10)
        try:
            yield connection
        finally:
            await connection.close(timeout=10)

    async def stop(self) -> None:
        """In the order of the local stack: workers before what they report to, stores last."""
        for group in ("worker", "gateway", "scheduler", "results", "nats"):
            stopping = [
                pod for pod in self.pods if pod.labels["app.kubernetes.io/component"].startswith(group)
            ]
            await asyncio.gather(*(pod.stop() for pod in stopping), return_exceptions=True)

    async def _start_all(self, kind: str) -> None:
        starting = [
            self._make(document["metadata"]["name"], template_of(document))
            for document in self._of_kind(kind)
            if not document["metadata"]["name"].endswith("-postgres")
            for _ in range(document["spec"]["replicas"])
        ]

        async def start(pod: Pod) -> None:
            await pod.start()
            self._publish()

        await asyncio.gather(*(start(pod) for pod in starting))

    def _make(self, name: str, template: Mapping[str, Any]) -> Pod:
        address = next(self._addresses)
        pod = Pod(f"{name}-{next(self._numbers)}", template, address, self.context, self.release)
        self.pods.append(pod)
        return pod

    def _publish(self) -> None:
        for service in self._of_kind("Service"):
            name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
            self.names.addresses[name] = [pod.address for pod in self.ready_pods(service)]

    def _of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.objects if each["kind"] == kind]


@asynccontextmanager
async def rendered_cluster(
    objects: Sequence[dict[str, Any]],
    secrets: Mapping[str, Mapping[str, str]],
    folder: Path,
    release: Path | None = None,
) -> AsyncIterator[RenderedCluster]:
    """Everything ready; `secrets` are those that an operator makes. The namespace is `proctor`.

    `release` is the folder of the release that is installed first; None: today's.
    """
    for each in objects:
        each["metadata"].setdefault("namespace", "proctor")
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        names, port = await opened.enter_async_context(name_server())
        cluster = RenderedCluster(objects, postgres, names, port, release=release)
        passwords = {f"postgres-{service}": each for service, each in postgres.passwords.items()}
        held = {**secrets, "proctor-trial": passwords}
        stores = Stores.of(list(objects), held, folder / "claims")
        cluster.context = PodContext(stores, folder / "pods", cluster)
        opened.push_async_callback(cluster.stop)
        await cluster.apply()
        yield cluster
