"""The docker engine: a container per sandbox, over the socket of Docker, podman or any engine like them."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiodocker import Docker
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError

from services.common.sandboxes.errors import CannotIsolate, SandboxError, SandboxLost, SandboxNotOpened
from services.common.sandboxes.sandbox import Command, Isolation, SandboxSpec
from services.worker.sandboxes.container.first_process import FirstProcess
from services.worker.sandboxes.container.programs import HOME, first_process, relay_process
from services.worker.sandboxes.container.sandbox import ContainerSandbox
from services.worker.sandboxes.docker.container import (
    ENGINE_ERRORS,
    EngineContainer,
    EngineRelay,
    StreamCommand,
    delete,
)
from services.worker.sandboxes.docker.container_config import (
    FIRST_USER,
    USERS,
    Config,
    ContainerDialect,
    relay_config,
    sandbox_config,
)
from services.worker.sandboxes.docker.owners import LABEL, is_left, labels, time_of
from services.worker.sandboxes.docker.pull import pull_image
from services.worker.sandboxes.docker.seccomp import profile

NAME = "docker"
_PODMAN = "Podman Engine"
# Composes addresses; the connection is the connector's.
_ANY_HOST = "unix://localhost"
_NO_CONNECTION = 900
_NOT_FOUND = 404
_ASK_SECONDS = 120.0
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# What an engine says of its machine, and what it cannot limit where it says no.
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "the number of processes", "CpuCfsQuota": "CPU time"}


_Started = tuple[DockerContainer, StreamCommand]


class DockerEngine:
    """`unix_socket`: path of the engine's socket. `image`: root file system of a sandbox that names none.

    `pulls`: whether an image that is not there is pulled.
    """

    def __init__(self, unix_socket: str, image: str, *, pulls: bool = True) -> None:
        self._socket = unix_socket
        self._image = image
        self._pulls = pulls
        self._docker: Docker | None = None
        self._dialect: ContainerDialect | None = None
        self._profile: Path | None = None
        self._environments: dict[str, Mapping[str, str]] = {}
        self._pulling = asyncio.Lock()
        self._open: set[ContainerSandbox] = set()

    async def check(self) -> Isolation:
        try:
            info = await self._client().system.info()
            sandbox = await self.open(SandboxSpec())
            try:
                result = await sandbox.run(Command(("python3", "-I", "-c", "print(6 * 7)")))
            finally:
                await sandbox.close()
        except SandboxError as error:
            return Isolation(NAME, str(error.facts.get("problem", error)))
        except ENGINE_ERRORS as error:
            return Isolation(NAME, self._unreachable(error))
        if result.text.strip() != "42":
            return Isolation(NAME, f"the image {self._image} has no python3, which tests are run with.")
        unlimited = tuple(what for key, what in _LIMITS.items() if not info.get(key, True))
        limits = "control groups of the container engine" if not unlimited else "those that the engine has"
        facts = {"program": self._socket, "image": self._image, "limits": limits}
        return Isolation(NAME, "", unlimited, facts)

    async def sweep(self) -> int:
        """Containers whose worker is gone, and those that were made and never started."""
        swept = 0
        try:
            now = time_of(await self._client().system.info())
            found = await self._client().containers.list(all=True, filters=f'{{"label": ["{LABEL}"]}}')
        except ENGINE_ERRORS as error:
            raise CannotIsolate(problem=self._unreachable(error)) from error
        for container in found:
            if is_left(container, now):
                with suppress(*ENGINE_ERRORS):
                    await container.delete(force=True, v=True)
                    swept += 1
        return swept

    async def open(self, spec: SandboxSpec) -> ContainerSandbox:
        image = spec.image or self._image
        dialect = await self._ready()
        config = sandbox_config(spec, image, _user(), dialect)
        config["Entrypoint"] = first_process(spec.lifetime_seconds)
        environment = await self._environment(image)
        container, first = await self._start(config, labels(spec.labels))
        made = EngineContainer(container, FirstProcess(first), environment, self._start_relay, [])
        try:
            await made.first.wait_started()
            home = () if spec.shows_image else (HOME,)
            await made.open_folders((*home, *spec.writable, spec.workdir))
        except BaseException:
            await asyncio.shield(made.remove())
            raise
        sandbox = ContainerSandbox(made, spec, self._open.discard)
        self._open.add(sandbox)
        return sandbox

    async def close(self) -> None:
        await asyncio.gather(*(sandbox.close() for sandbox in tuple(self._open)), return_exceptions=True)
        if self._docker:
            await self._docker.close()
            await self._docker.connector.close()
            self._docker = None
        if self._profile:
            self._profile.unlink(missing_ok=True)
            self._profile = None

    def _client(self) -> Docker:
        if self._docker is None:
            # One connection stays open for each sandbox and each command.
            connector = aiohttp.UnixConnector(self._socket, limit=0)
            timeout = aiohttp.ClientTimeout(total=_ASK_SECONDS)
            self._docker = Docker(url=_ANY_HOST, connector=connector, timeout=timeout)
        return self._docker

    async def _ready(self) -> ContainerDialect:
        """Asked once. Raises CannotIsolate where no engine answers."""
        if self._dialect is None:
            try:
                version = await self._client().version()
            except ENGINE_ERRORS as error:
                raise CannotIsolate(problem=self._unreachable(error)) from error
            machine = _MACHINES.get(version.get("Arch", ""), version.get("Arch", ""))
            if machine not in _MACHINES.values():
                raise CannotIsolate(problem=f"there is no filter of system calls for {machine}.")
            names = {component["Name"] for component in version.get("Components", ())}
            podman_profile = self._write_profile(machine) if _PODMAN in names else ""
            self._dialect = ContainerDialect(machine=machine, podman_profile=podman_profile)
        return self._dialect

    def _write_profile(self, machine: str) -> str:
        file, path = tempfile.mkstemp(prefix="proctor-seccomp-", suffix=".json")
        with os.fdopen(file, "w", encoding="utf-8") as written:
            written.write(profile(machine))
        self._profile = Path(path)
        return path

    async def _environment(self, image: str) -> Mapping[str, str]:
        """Variables of the image, which is pulled where it is not there."""
        if image not in self._environments:
            async with self._pulling:
                shown = await self._shown_image(image)
            given = (shown.get("Config") or {}).get("Env") or ()
            self._environments[image] = dict(each.split("=", 1) for each in given if "=" in each)
        return self._environments[image]

    async def _shown_image(self, image: str) -> Mapping[str, Any]:
        images = self._client().images
        try:
            return await images.inspect(image)
        except ENGINE_ERRORS as error:
            if not isinstance(error, DockerError) or error.status != _NOT_FOUND:
                raise SandboxNotOpened(problem=_problem_of(error)) from error
        if not self._pulls:
            raise SandboxNotOpened(
                problem=f"the image {image} is not there; it is pulled for the first sandbox."
            )
        try:
            await pull_image(self._socket, image)
            return await images.inspect(image)
        except ENGINE_ERRORS as error:
            problem = f"the image {image} is not there and cannot be pulled: {_problem_of(error)}"
            raise SandboxNotOpened(problem=problem) from error

    async def _start(self, config: Config, own_labels: Mapping[str, str]) -> _Started:
        """A running container whose first process ends with the connection to it."""
        container: DockerContainer | None = None
        name = f"proctor-sandbox-{secrets.token_hex(8)}"
        try:
            container = await self._client().containers.create(
                {**config, "Labels": dict(own_labels)}, name=name
            )
            stream = container.attach(stdin=True, stdout=True, stderr=True)
            connection = StreamCommand(stream)
            await stream.__aenter__()
            await container.start()
        except BaseException as error:
            if container is not None:
                await asyncio.shield(delete(container))
            if isinstance(error, ENGINE_ERRORS):
                raise SandboxNotOpened(problem=_problem_of(error)) from error
            raise
        return container, connection

    async def _start_relay(self, beside: str) -> EngineRelay:
        config = relay_config(beside, self._image, _user(), await self._ready())
        config["Entrypoint"] = relay_process()
        try:
            return EngineRelay(*await self._start(config, labels({})))
        except SandboxNotOpened as error:
            raise SandboxLost(problem=f"its model port could not be opened: {error}") from error

    def _unreachable(self, error: Exception) -> str:
        if isinstance(error, DockerError) and error.status != _NO_CONNECTION:
            return f"the container engine at {self._socket} refuses: {_problem_of(error)}"
        return (
            f"no container engine answers at {self._socket}; start Docker or podman's service, and set "
            "PROCTOR_WORKER_SANDBOX_SOCKET to its socket."
        )


def _problem_of(error: BaseException) -> str:
    return error.message.strip()[:300] if isinstance(error, DockerError) else type(error).__name__


def _user() -> int:
    return FIRST_USER + secrets.randbelow(USERS)
