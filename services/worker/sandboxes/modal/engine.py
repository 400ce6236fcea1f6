"""The modal engine: a sandbox of Modal's cloud per sandbox, without a network.

It asks Modal by the account that Modal's own variables or file name. None of that enters a sandbox.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

import modal

from services.common.sandboxes.errors import CannotIsolate, SandboxError, SandboxNotOpened
from services.common.sandboxes.sandbox import Command, Isolation, SandboxSpec
from services.worker.sandboxes.container import owners
from services.worker.sandboxes.container.programs import HOME, reach
from services.worker.sandboxes.container.sandbox import ContainerSandbox
from services.worker.sandboxes.modal.container import MODAL_ERRORS, HostedContainer, problem_of
from services.worker.sandboxes.modal.programs import hold

NAME = "modal"
LABEL, OWNER = "proctor-sandbox", "proctor-owner"
_MIB = 1024**2
_SLACK_SECONDS = 120
# Modal's own limit.
_MAX_SECONDS = 24 * 3600
# An image is built for its first sandbox.
_CREATE_SECONDS, _ASK_SECONDS = 1800.0, 60.0
_HEARTBEATS_PER_SILENCE = 6
_UNLIMITED = (
    "the number of processes, but by their memory",
    "the space of a folder and the number of files: one file is limited",
)
# An address that any machine with a network reaches.
_OUTSIDE = ("1.1.1.1", 443)
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9._-]")
_MAX_TAG_CHARACTERS = 63


@dataclass(frozen=True, slots=True)
class ModalSettings:
    """`app`: the Modal app that owns the sandboxes; created if missing.

    A sandbox ends by itself once its worker is silent for `silence_seconds`.
    """

    app: str
    image: str
    silence_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class ModalClient:
    """The part of Modal's package that the engine uses."""

    apps: type[modal.App] = modal.App
    images: type[modal.Image] = modal.Image
    sandboxes: type[modal.Sandbox] = modal.Sandbox


class ModalEngine:
    def __init__(self, settings: ModalSettings, client: ModalClient | None = None) -> None:
        self._settings = settings
        self._client = client or ModalClient()
        self._app: modal.App | None = None
        self._connecting = asyncio.Lock()
        self._open: set[ContainerSandbox] = set()

    async def check(self) -> Isolation:
        """Tries to reach another machine from inside."""
        image = self._settings.image
        try:
            sandbox = await self.open(SandboxSpec())
            try:
                reached = await sandbox.run(Command(reach(*_OUTSIDE), timeout_seconds=20.0))
            finally:
                await sandbox.close()
        except SandboxError as error:
            return Isolation(NAME, str(error.facts.get("problem", error)))
        if reached.text.strip() != "held":
            return Isolation(NAME, f"a sandbox reached {_OUTSIDE[0]}, though its network is blocked.")
        facts = {"program": "Modal", "app": self._settings.app, "image": image, "limits": "those of Modal"}
        return Isolation(NAME, "", _UNLIMITED, facts)

    async def sweep(self) -> int:
        """Ends sandboxes of workers of this machine that are gone. Those of others end by the silence."""
        swept = 0
        app = await self._connected()
        try:
            async for sandbox in self._client.sandboxes.list.aio(app_id=app.app_id, tags={LABEL: "true"}):
                tags = await sandbox.get_tags.aio()
                if owners.has_ended(tags.get(OWNER, "")):
                    await sandbox.terminate.aio()
                    swept += 1
        except MODAL_ERRORS as error:
            raise CannotIsolate(problem=problem_of(error)) from error
        return swept

    async def open(self, spec: SandboxSpec) -> ContainerSandbox:
        app = await self._connected()
        try:
            async with asyncio.timeout(_CREATE_SECONDS):
                hosted = await self._create(app, spec)
        except MODAL_ERRORS as error:
            raise SandboxNotOpened(problem=problem_of(error)) from error
        heartbeat_seconds = self._settings.silence_seconds / _HEARTBEATS_PER_SILENCE
        container = HostedContainer(hosted, spec.limits, heartbeat_seconds)
        try:
            await container.hold((HOME, *spec.writable, spec.workdir))
        except BaseException:
            await asyncio.shield(container.remove())
            raise
        sandbox = ContainerSandbox(container, spec, self._open.discard)
        self._open.add(sandbox)
        return sandbox

    async def close(self) -> None:
        await asyncio.gather(*(sandbox.close() for sandbox in tuple(self._open)), return_exceptions=True)

    async def _connected(self) -> modal.App:
        """Raises CannotIsolate."""
        async with self._connecting:
            if self._app is None:
                try:
                    async with asyncio.timeout(_ASK_SECONDS):
                        lookup = self._client.apps.lookup.aio
                        self._app = await lookup(self._settings.app, create_if_missing=True)
                except MODAL_ERRORS as error:
                    raise CannotIsolate(problem=problem_of(error)) from error
            return self._app

    async def _create(self, app: modal.App, spec: SandboxSpec) -> modal.Sandbox:
        limits = spec.limits
        memory = -(-limits.memory_bytes // _MIB)
        seconds = min(int(spec.lifetime_seconds) + _SLACK_SECONDS, _MAX_SECONDS)
        return await self._client.sandboxes.create.aio(
            *hold(seconds, self._settings.silence_seconds),
            app=app,
            image=self._client.images.from_registry(spec.image or self._settings.image),
            tags=_tags(spec.labels),
            timeout=seconds,
            workdir="/",
            # Request and limit.
            cpu=(limits.cpus, limits.cpus),
            memory=(memory, memory),
            block_network=True,
        )


def _tags(labels: Mapping[str, str]) -> dict[str, str]:
    given = {_NOT_IN_TAGS.sub("-", name): _NOT_IN_TAGS.sub("-", value) for name, value in labels.items()}
    made = {**given, LABEL: "true", OWNER: owners.own()}
    return {name[:_MAX_TAG_CHARACTERS]: value[:_MAX_TAG_CHARACTERS] for name, value in made.items()}
