"""The kubernetes engine: a pod per sandbox, in a namespace whose policy gives it no network."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client import ApiException, Configuration
from kubernetes_asyncio.stream import WsApiClient

from services.common.sandboxes.errors import CannotIsolate, SandboxError, SandboxNotOpened
from services.common.sandboxes.sandbox import Command, Isolation, SandboxSpec
from services.worker.sandboxes.container.programs import reach
from services.worker.sandboxes.container.sandbox import ContainerSandbox
from services.worker.sandboxes.kubernetes.container import Pod, delete, problem_of
from services.worker.sandboxes.kubernetes.manifests import LABEL, POLICY, pod, policy

NAME = "kubernetes"
_START_SECONDS = 300.0
_POLL_SECONDS = (0.1, 1.0)
_HEARTBEAT_SECONDS = 20.0
_NOT_FOUND, _CONFLICT = 404, 409
_UNLIMITED = (
    "the number of processes: the kubelet does (podPidsLimit)",
    "the number of files, but by their memory",
)
# Reasons for which a container that waits will not start.
_HOPELESS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


@dataclass(frozen=True, slots=True)
class PodSettings:
    """`namespace` is for sandboxes alone. An empty `runtime_class` is the cluster's default runtime."""

    namespace: str
    image: str
    runtime_class: str = ""


async def configured() -> Configuration:
    """The pod's own account where the worker runs in a pod, else the user's kubeconfig."""
    made = Configuration()
    try:
        config.load_incluster_config(client_configuration=made)  # type: ignore[no-untyped-call]  # it has none
    except config.ConfigException:
        await config.load_kube_config(client_configuration=made)
    return made


class KubernetesEngine:
    def __init__(
        self, settings: PodSettings, configure: Callable[[], Awaitable[Configuration]] = configured
    ) -> None:
        self._settings = settings
        self._configure = configure
        self._host = ""
        self._api: client.ApiClient | None = None
        self._sockets: WsApiClient | None = None
        self._connecting = asyncio.Lock()
        self._open: set[ContainerSandbox] = set()

    async def check(self) -> Isolation:
        """Tries to reach the API server from inside: not every cluster enforces policies of networks."""
        try:
            sandbox = await self.open(SandboxSpec())
            try:
                started = await sandbox.run(Command(("python3", "-I", "-c", "print(6 * 7)")))
                address = urlsplit(self._host)
                port = address.port or (443 if address.scheme == "https" else 80)
                asked = reach(address.hostname or "", port)
                reached = await sandbox.run(Command(asked, timeout_seconds=20.0))
            finally:
                await sandbox.close()
        except SandboxError as error:
            return Isolation(NAME, str(error.facts.get("problem", error)))
        if started.text.strip() != "42":
            image = self._settings.image
            return Isolation(NAME, f"the image {image} has no python3, which tests are run with.")
        if reached.text.strip() != "held":
            return Isolation(NAME, f"the cluster does not enforce NetworkPolicy: a pod reached {self._host}.")
        facts = {
            "program": self._host,
            "namespace": self._settings.namespace,
            "image": self._settings.image,
            "runtime class": self._settings.runtime_class or "the cluster's default",
            "limits": "those of the pod",
        }
        return Isolation(NAME, "", _UNLIMITED, facts)

    async def sweep(self) -> int:
        """Pods that have ended: a pod ends with the connection of its worker, and does not remove itself."""
        pods = client.CoreV1Api(await self._connected())
        namespace = self._settings.namespace
        try:
            listed = await pods.list_namespaced_pod(namespace, label_selector=f"{LABEL}=true")
        except (ApiException, aiohttp.ClientError, OSError) as error:
            raise CannotIsolate(problem=self._problem(error)) from error
        ended = [one.metadata.name for one in listed.items if one.status.phase in ("Succeeded", "Failed")]
        deleted = await asyncio.gather(*(delete(pods, namespace, name) for name in ended))
        return sum(deleted)

    async def open(self, spec: SandboxSpec) -> ContainerSandbox:
        api = await self._connected()
        settings = self._settings
        name = f"proctor-sandbox-{secrets.token_hex(8)}"
        manifest = pod(spec, name, spec.image or settings.image, settings.image, settings.runtime_class)
        pods = client.CoreV1Api(api)
        made = Pod(pods, client.CoreV1Api(self._sockets), settings.namespace, name)
        try:
            await pods.create_namespaced_pod(settings.namespace, manifest)  # type: ignore[arg-type]  # JSON
            await self._wait_running(pods, name)
            await made.hold()
        except BaseException as error:
            await asyncio.shield(made.remove())
            if isinstance(error, ApiException | aiohttp.ClientError | OSError):
                raise SandboxNotOpened(problem=self._problem(error)) from error
            raise
        sandbox = ContainerSandbox(made, spec, self._open.discard)
        self._open.add(sandbox)
        return sandbox

    async def close(self) -> None:
        await asyncio.gather(*(sandbox.close() for sandbox in tuple(self._open)), return_exceptions=True)
        for api in (self._api, self._sockets):
            if api is not None:
                await api.close()
        self._api = self._sockets = None

    async def _connected(self) -> client.ApiClient:
        """Connects once, and finds or makes the policy of the namespace. Raises CannotIsolate."""
        async with self._connecting:
            if self._api is None:
                try:
                    configuration = await self._configure()
                except config.ConfigException as error:
                    problem = "there is no cluster: the worker runs in no pod, and has no kubeconfig."
                    raise CannotIsolate(problem=problem) from error
                self._host = configuration.host or ""
                api = client.ApiClient(configuration)
                try:
                    await self._find_policy(api)
                except BaseException:
                    await api.close()
                    raise
                self._api = api
                self._sockets = WsApiClient(configuration, heartbeat=_HEARTBEAT_SECONDS)
            return self._api

    async def _find_policy(self, api: client.ApiClient) -> None:
        """Makes it where it is missing. The right to read it is enough where an operator has made it."""
        policies = client.NetworkingV1Api(api)
        namespace, wanted = self._settings.namespace, policy()
        try:
            found = await _policy_in(policies, namespace)
            if found is None:
                with _another_may_make_it():
                    await policies.create_namespaced_network_policy(
                        namespace,
                        wanted,  # type: ignore[arg-type]  # JSON
                    )
                found = await _policy_in(policies, namespace)
            if found is None or api.sanitize_for_serialization(found.spec) != wanted["spec"]:
                problem = f"the NetworkPolicy {namespace}/{POLICY} is not Proctor's; delete it."
                raise CannotIsolate(problem=problem)
        except (ApiException, aiohttp.ClientError, OSError) as error:
            raise CannotIsolate(problem=self._problem(error)) from error

    async def _wait_running(self, pods: client.CoreV1Api, name: str) -> None:
        end, wait = time.monotonic() + _START_SECONDS, _POLL_SECONDS[0]
        while True:
            shown = await pods.read_namespaced_pod(name, self._settings.namespace)
            statuses = shown.status.container_statuses or ()
            if shown.status.phase == "Running" and all(each.state.running for each in statuses):
                return
            if problem := _hopeless(shown):
                raise SandboxNotOpened(problem=problem)
            if time.monotonic() > end:
                problem = f"its pod did not start in {_START_SECONDS:g} s. {_waits(shown)}"
                raise SandboxNotOpened(problem=problem)
            await asyncio.sleep(wait)
            wait = min(2 * wait, _POLL_SECONDS[1])

    def _problem(self, error: Exception) -> str:
        if isinstance(error, ApiException):
            return f"the API server refuses: {problem_of(error)}"
        return f"the API server at {self._host} does not answer ({type(error).__name__})."


def _hopeless(shown: Any) -> str:
    if shown.status.phase in ("Failed", "Succeeded"):
        return f"its pod ended ({shown.status.reason or shown.status.message or shown.status.phase})."
    for each in shown.status.container_statuses or ():
        if each.state.waiting and each.state.waiting.reason in _HOPELESS:
            return f"{each.state.waiting.reason}: {(each.state.waiting.message or each.image)[:200]}"
    return ""


def _waits(shown: Any) -> str:
    return next((each.message for each in shown.status.conditions or () if each.message), "")


async def _policy_in(policies: client.NetworkingV1Api, namespace: str) -> Any:  # its types know no None
    try:
        return await policies.read_namespaced_network_policy(POLICY, namespace)
    except ApiException as error:
        if error.status == _NOT_FOUND:
            return None
        raise


@contextmanager
def _another_may_make_it() -> Iterator[None]:
    """Workers that start together find nothing, and one of them makes it."""
    try:
        yield
    except ApiException as error:
        if error.status != _CONFLICT:
            raise
