"""A rendered pod as processes: its containers' commands, environment, volumes, probes and signals."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from proctor.stack.supervision.probes import grpc_serves
from proctor.stack.supervision.process import RunningProcess
from tests.harness.cluster.volumes import Document, Stores, make_volumes, mount
from tests.harness.forks.services import service_of, start_forked
from tests.harness.processes import bound

_REFERENCE = re.compile(r"\$\((\w+)\)")
_PROGRAMS = Path(sys.executable).parent
# Beside what the pod says, what an image has.
_IMAGE = {"PATH": f"{_PROGRAMS}{os.pathsep}{os.defpath}", "PYTHONUNBUFFERED": "1"}
# Probes ask this much more often than they say: a test waits for them.
_HASTE = 5
_END_LIMIT_SECONDS = 120.0


class PodFailed(Exception):
    """A pod ended or did not become ready. The message has the end of its log."""


@dataclass(frozen=True)
class PodContext:
    """`resolve` gives the address, on this machine, of what a variable names."""

    stores: Stores
    folder: Path
    resolve: "Resolve"


class Resolve:
    """Names of Services in the environment of a pod to addresses; see `rendered_cluster`."""

    def __call__(self, variable: str, value: str) -> str:
        raise NotImplementedError


@dataclass
class Pod:
    """`template` is what a Deployment or a StatefulSet makes its pods from; `address` is the pod's own."""

    name: str
    template: Document
    address: str
    context: PodContext
    # The folder of a release whose code it runs, in place of today's.
    release: Path | None = None
    process: RunningProcess | None = None
    is_ready: bool = False
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.context.folder / self.name
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        self.spec: Document = self.template["spec"]
        self.volumes = make_volumes(self.spec, self.context.stores, self.folder)

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.template["metadata"]["labels"]
        return labels

    async def start(self) -> None:
        """Runs the init containers and starts the one container; returns when its probes pass."""
        for container in self.spec.get("initContainers", ()):
            done = await self._launch(container)
            if await self._ended(done) != 0:
                raise PodFailed(self._report(f"the init container {container['name']} failed"))
        [container] = self.spec["containers"]
        self.process = await self._launch(container)
        for name in ("startupProbe", "readinessProbe"):
            await self._pass(container[name], name, container)
        self.is_ready = True

    async def run(self) -> int:
        """A pod that ends by itself: its exit code."""
        [container] = self.spec["containers"]
        self.process = await self._launch(container)
        return await self._ended(self.process)

    async def stop(self) -> int:
        """As the kubelet: SIGTERM, and SIGKILL after the grace period, which is a failure."""
        self.is_ready = False
        if self.process is None or self.process.returncode is not None:
            return self.process.returncode if self.process and self.process.returncode is not None else 0
        self.process.send_signal(signal.SIGTERM)
        grace = self.spec["terminationGracePeriodSeconds"]
        try:
            return await asyncio.wait_for(self.process.wait(), grace)
        except TimeoutError:
            self.process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(self.process.wait(), grace)
            raise PodFailed(self._report(f"still ran {grace} s after SIGTERM")) from None

    async def _ended(self, process: RunningProcess) -> int:
        """The exit code of what ends by itself."""
        try:
            async with asyncio.timeout(_END_LIMIT_SECONDS):
                return await process.wait()
        except TimeoutError:
            process.send_signal(signal.SIGKILL)
            raise PodFailed(self._report(f"still ran after {_END_LIMIT_SECONDS:g} s")) from None

    async def is_alive(self) -> bool:
        [container] = self.spec["containers"]
        return await self._probe(container["livenessProbe"], container)

    async def _launch(self, container: Document) -> RunningProcess:
        """Today's services are forked; those of another release are started by the command itself."""
        root = self.folder / container["name"]
        folders = mount(container, self.volumes, root)
        for folder in folders.values():
            if folder.is_file():
                folder.write_text(self._placed(folder.read_text(), folders))
        environment = {**_IMAGE, **self._environment(container, folders)}
        command = [self._placed(part, folders) for part in container["command"]]
        if command[0] == "nats-server":  # it listens on all addresses of its pod
            command += ["--addr", self.address]
        with self.log.open("ab") as log:
            if self.release is None and (module := service_of(command)):
                return await start_forked(module, (), environment, (log.fileno(), log.fileno()))
            return await asyncio.create_subprocess_exec(
                *bound(*command), env=environment, stdout=log, stderr=log, cwd=root, start_new_session=True
            )

    def _environment(self, container: Document, folders: Mapping[str, Path]) -> dict[str, str]:
        found: dict[str, str] = {"PYTHONPATH": str(self.release)} if self.release else {}
        for source in container.get("envFrom", ()):
            found |= self.context.stores.secrets[source["secretRef"]["name"]]
        for variable in container.get("env", ()):
            value = self._value(variable)
            value = _REFERENCE.sub(lambda match: found.get(match[1], match[0]), value)
            value = self._placed(value, folders).replace("0.0.0.0", self.address)
            found[variable["name"]] = self.context.resolve(variable["name"], value)
        return found

    def _value(self, variable: Document) -> str:
        if "valueFrom" not in variable:
            return str(variable.get("value", ""))
        if field := variable["valueFrom"].get("fieldRef"):
            assert field == {"fieldPath": "metadata.name"}
            return self.name
        reference = variable["valueFrom"]["secretKeyRef"]
        return self.context.stores.secrets[reference["name"]][reference["key"]]

    @staticmethod
    def _placed(text: str, folders: Mapping[str, Path]) -> str:
        """With the paths of mounts replaced by their places."""
        for path, folder in folders.items():
            text = re.sub(rf"(?<![\w/.-]){re.escape(path)}(?![\w-])", str(folder), text)
        # A URL of a file has its path after two slashes.
        for path, folder in folders.items():
            text = re.sub(rf"(?<=file://){re.escape(path)}(?![\w-])", str(folder), text)
        return text

    async def _pass(self, probe: Document, name: str, container: Document) -> None:
        assert self.process is not None
        tries = probe.get("failureThreshold", 3) * _HASTE
        for _ in range(tries):
            if self.process.returncode is not None:
                raise PodFailed(
                    self._report(f"ended with {self.process.returncode} before its {name} passed")
                )
            if await self._probe(probe, container):
                return
            await asyncio.sleep(probe["periodSeconds"] / _HASTE)
        raise PodFailed(self._report(f"its {name} did not pass in {tries} tries"))

    async def _probe(self, probe: Document, container: Document) -> bool:
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        [(kind, asked)] = [(kind, probe[kind]) for kind in ("grpc", "httpGet", "tcpSocket") if kind in probe]
        port = ports.get(asked["port"], asked["port"])
        async with asyncio.timeout(30):
            if kind == "grpc":
                return await grpc_serves(f"{self.address}:{port}")
            if kind == "httpGet":
                return await http_answers(f"http://{self.address}:{port}{asked['path']}")
            return await _accepts(self.address, port)

    def _report(self, problem: str) -> str:
        return f"{self.name}: {problem}\n{self.log.read_text(errors='replace')[-4000:]}"


async def http_answers(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status < 400
    except aiohttp.ClientError:
        return False


async def _accepts(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def template_of(document: Document) -> Document:
    """Of a pod itself, or of what makes pods. A claim of a StatefulSet is a folder of the pod's own."""
    if document["kind"] == "Pod":
        return document
    template: Document = document["spec"]["template"]
    claims = [
        {"name": claim["metadata"]["name"], "emptyDir": {}}
        for claim in document["spec"].get("volumeClaimTemplates", ())
    ]
    spec = template["spec"]
    return {**template, "spec": {**spec, "volumes": [*spec.get("volumes", ()), *claims]}}
