"""An API server of Kubernetes for tests: its real HTTP and WebSockets, with podman for a kubelet.

It admits what a namespace with the standard "restricted" admits. It enforces no NetworkPolicy: its pods have
no network at all.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
from aiodocker import Docker
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError
from aiodocker.stream import Stream
from aiohttp import UnixConnector, WSMsgType, web

VERSIONS = ("1.29", "1.37")
# The kubelet's podPidsLimit.
_PROCESSES = 64
_STDERR = 2

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Pod:
    manifest: Json
    containers: dict[str, DockerContainer] = field(default_factory=dict)


class Cluster:
    """`url` is known once it listens."""

    url: str

    def __init__(self, podman_socket: str) -> None:
        # Where podman is asked for its version, it asks the package manager for those of its programs.
        connector = UnixConnector(podman_socket, limit=0)
        self._docker = Docker(url="unix://localhost", connector=connector, api_version="v1.41")
        self.pods: dict[str, Pod] = {}
        self.policies: dict[str, Json] = {}
        # The rules of the caller's role; None: it may do everything.
        self.rules: Sequence[Json] | None = None
        pods = "/api/v1/namespaces/{namespace}/pods"
        policies = "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
        self.app = web.Application(middlewares=[self.authorized])
        self.app.add_routes(
            [
                web.post(policies, self.create_policy),
                web.get(policies + "/{name}", self.read_policy),
                web.post(pods, self.create_pod),
                web.get(pods, self.list_pods),
                web.get(pods + "/{name}", self.read_pod),
                web.delete(pods + "/{name}", self.delete_pod),
                web.get(pods + "/{name}/exec", self.execute),
                web.get(pods + "/{name}/attach", self.attach),
            ]
        )

    async def close(self) -> None:
        for name in tuple(self.pods):
            await self._remove(name)
        await self._docker.close()
        await self._docker.connector.close()

    @web.middleware
    async def authorized(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """By the verbs of Kubernetes, where a WebSocket is opened by a `get`."""
        _, _, path = request.path.partition("/namespaces/")
        _, resource, *rest = path.split("/")
        if len(rest) == 2:
            resource = f"{resource}/{rest.pop()}"
        verbs = {"POST": "create", "DELETE": "delete", "GET": "get" if rest else "list"}
        verb = verbs[request.method]
        for rule in [] if self.rules is None else self.rules:
            names = rule.get("resourceNames", rest)
            if verb in rule["verbs"] and resource in rule["resources"] and rest[:1] == names[:1]:
                break
        else:
            if self.rules is not None:
                return status(403, "Forbidden", f"cannot {verb} resource {resource}")
        return await handler(request)

    async def create_policy(self, request: web.Request) -> web.Response:
        manifest = await request.json()
        if problem := invalid(manifest):
            return status(422, "Invalid", problem)
        name = manifest["metadata"]["name"]
        if name in self.policies:
            return status(409, "AlreadyExists", f'networkpolicies "{name}" already exists')
        self.policies[name] = manifest
        return web.json_response(manifest, status=201)

    async def read_policy(self, request: web.Request) -> web.Response:
        found = self.policies.get(request.match_info["name"])
        if found is None:
            return status(404, "NotFound", "networkpolicies not found")
        return web.json_response(found)

    async def create_pod(self, request: web.Request) -> web.Response:
        manifest = await request.json()
        if problem := invalid(manifest):
            return status(422, "Invalid", problem)
        if problem := forbidden(manifest["spec"]):
            return status(403, "Forbidden", f'violates PodSecurity "restricted:latest": {problem}')
        name = manifest["metadata"]["name"]
        self.pods[name] = Pod(manifest)
        await self._start(self.pods[name])
        return web.json_response(await self._shown(self.pods[name]), status=201)

    async def list_pods(self, request: web.Request) -> web.Response:
        label, _, value = request.query["labelSelector"].partition("=")
        found = [pod for pod in self.pods.values() if pod.manifest["metadata"]["labels"].get(label) == value]
        items = [await self._shown(pod) for pod in found]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def read_pod(self, request: web.Request) -> web.Response:
        pod = self.pods.get(request.match_info["name"])
        if pod is None:
            return status(404, "NotFound", "pods not found")
        return web.json_response(await self._shown(pod))

    async def delete_pod(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.pods:
            return status(404, "NotFound", "pods not found")
        manifest = self.pods[name].manifest
        await self._remove(name)
        return web.json_response(manifest)

    async def execute(self, request: web.Request) -> web.StreamResponse:
        container = self._container(request)
        has_input = request.query.get("stdin", "") == "True"
        made = await container.exec(request.query.getall("command"), stdin=has_input, tty=False)
        stream = made.start(detach=False)
        await stream.__aenter__()
        socket = await accepted(request)
        await bridge(socket, stream)
        with suppress(DockerError):
            shown = await made.inspect()
            await socket.send_bytes(b"\x03" + exit_status(shown["ExitCode"]))
        await socket.close()
        return socket

    async def attach(self, request: web.Request) -> web.StreamResponse:
        stream = self._container(request).attach(stdin=True, stdout=True, stderr=True)
        await stream.__aenter__()
        socket = await accepted(request)
        await bridge(socket, stream)
        await socket.close()
        return socket

    def _container(self, request: web.Request) -> DockerContainer:
        pod = self.pods.get(request.match_info["name"])
        if pod is None:
            raise web.HTTPNotFound
        return pod.containers[request.query["container"]]

    async def _start(self, pod: Pod) -> None:
        spec = pod.manifest["spec"]
        sizes = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"]}
        network = "none"
        for order in spec["containers"]:
            config = container_config(spec, order, sizes, network)
            try:
                container = await self._docker.containers.create(config)
            except DockerError:
                return
            pod.containers[order["name"]] = container
            await container.start()
            network = f"container:{container.id}"
            if folders := [mount["mountPath"] for mount in order.get("volumeMounts", ())]:
                # The kubelet makes folders for all users.
                made = await container.exec(["chmod", "0777", *folders], user="0", tty=False)
                async with made.start(detach=False) as stream:
                    assert await stream.read_out() is None

    async def _shown(self, pod: Pod) -> Json:
        spec, statuses = pod.manifest["spec"], []
        for order in spec["containers"]:
            state: Json = {"waiting": {"reason": "ErrImagePull", "message": f"no image {order['image']}"}}
            if container := pod.containers.get(order["name"]):
                shown = (await container.show())["State"]
                ended = {"terminated": {"exitCode": shown["ExitCode"]}}
                state = {"running": {}} if shown["Running"] else ended
            statuses.append(
                {
                    "name": order["name"],
                    "image": order["image"],
                    "imageID": "",
                    "ready": "running" in state,
                    "restartCount": 0,
                    "state": state,
                }
            )
        phases = {"running": "Running", "terminated": "Succeeded", "waiting": "Pending"}
        phase = phases[next(iter(statuses[0]["state"]))]
        return {**pod.manifest, "status": {"phase": phase, "containerStatuses": statuses}}

    async def _remove(self, name: str) -> None:
        pod = self.pods.pop(name)
        for container in reversed(pod.containers.values()):
            with suppress(DockerError):
                await container.delete(force=True, v=True)


@asynccontextmanager
async def fake_cluster(podman_socket: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(podman_socket)
    runner = web.AppRunner(cluster.app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    cluster.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield cluster
    finally:
        await cluster.close()
        await runner.cleanup()


def invalid(manifest: Json) -> str:
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            return f"{version}: {error.message}"
    return ""


def forbidden(spec: Json) -> str:
    """The rules of the standard "restricted" for what a pod of ours has."""
    own = spec["securityContext"]
    problems = []
    if not own.get("runAsNonRoot") or own.get("runAsUser") == 0:
        problems.append("runAsNonRoot")
    if own.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        problems.append("seccompProfile")
    if any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
        problems.append("host namespaces")
    if any(set(volume) - {"name", "emptyDir"} for volume in spec["volumes"]):
        problems.append("volume types")
    for container in spec["containers"]:
        context = container["securityContext"]
        if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
            problems.append("allowPrivilegeEscalation")
        if context.get("capabilities", {}).get("drop") != ["ALL"]:
            problems.append("unrestricted capabilities")
    return ", ".join(problems)


def container_config(spec: Json, order: Json, sizes: dict[str, str], network: str) -> Json:
    own, limits = spec["securityContext"], order["resources"]["limits"]
    folders = {
        mount["mountPath"]: f"rw,nosuid,nodev,size={sizes[mount['name']]},notmpcopyup"
        for mount in order.get("volumeMounts", ())
    }
    ulimits = {"nofile": 1024, "nproc": 4096, "core": 0}
    host = {
        "NetworkMode": network,
        "ReadonlyRootfs": order["securityContext"]["readOnlyRootFilesystem"],
        "CapDrop": order["securityContext"]["capabilities"]["drop"],
        "SecurityOpt": ["no-new-privileges"],
        "Memory": amount(limits["memory"]),
        "MemorySwap": amount(limits["memory"]),
        "NanoCpus": int(limits["cpu"].removesuffix("m")) * 1_000_000,
        "PidsLimit": _PROCESSES,
        "Tmpfs": folders,
        "Ulimits": [{"Name": name, "Soft": most, "Hard": most} for name, most in ulimits.items()],
    }
    return {
        "Image": order["image"],
        "Entrypoint": order["command"],
        "User": f"{own['runAsUser']}:{own['runAsGroup']}",
        "OpenStdin": order["stdin"],
        "StdinOnce": order["stdinOnce"],
        "WorkingDir": order.get("workingDir", "/"),
        "HostConfig": host,
    }


def amount(written: str) -> int:
    return int(written.removesuffix("Mi")) * 1024**2 if written.endswith("Mi") else int(written)


def status(code: int, reason: str, message: str) -> web.Response:
    shown = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return web.json_response({**shown, "code": code}, status=code)


def exit_status(code: int) -> bytes:
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    causes = [{"reason": "ExitCode", "message": str(code)}]
    failure = {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "details": {"causes": causes},
    }
    return json.dumps(failure).encode()


async def accepted(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    assert socket.ws_protocol == "v4.channel.k8s.io"
    return socket


async def bridge(socket: web.WebSocketResponse, stream: Stream) -> None:
    """Streams of a command over channels, until either side ends."""

    async def to_client() -> None:
        for channel in (1, 2):
            await socket.send_bytes(bytes((channel,)))
        while message := await stream.read_out():
            await socket.send_bytes(bytes((2 if message.stream == _STDERR else 1,)) + message.data)

    async def to_command() -> None:
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[:1] == b"\0":
                await stream.write_in(message.data[1:])

    tasks = {asyncio.create_task(to_client()), asyncio.create_task(to_command())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(OSError, AssertionError):
            await stream.close()
