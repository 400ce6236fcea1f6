"""Builds images of tasks by the socket of Docker, podman or an engine like them."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from proctor.values.rollout import ImageBuild
from services.common.sandboxes.errors import ImageNotAllowed, ImageNotBuilt
from services.worker.sandboxes.allowed_images import is_allowed

REPOSITORY = "localhost/proctor-task"
# By which an operator finds and removes them.
LABEL = "proctor.task"
_EMPTY = "scratch"
_PODMAN = "Podman Engine"
_OWN_NETWORK = {"Name": "network", "Host": False, "Path": ""}
_DISABLED = "1"
_SECONDS = 3600.0
_OK, _NOT_FOUND = 200, 404
_SHOWN_LINES, _SHOWN_CHARACTERS = 5, 600


class DockerBuilder:
    """`images` are prefixes of those that a Dockerfile may name. `has_network`: its RUNs have one.

    The engine's first builder is used: it executes no program that the first line of a Dockerfile names.
    """

    def __init__(self, unix_socket: str, images: Sequence[str], *, has_network: bool) -> None:
        self._socket = unix_socket
        self._images = images
        self._has_network = has_network
        self._building: dict[str, asyncio.Lock] = {}

    async def build(self, context: bytes, build: ImageBuild) -> str:
        self._check(build)
        network = "network" if self._has_network else "offline"
        digest = await asyncio.to_thread(lambda: hashlib.sha256(network.encode() + context).hexdigest())
        image = f"{REPOSITORY}:{digest[:40]}"
        async with self._building.setdefault(image, asyncio.Lock()), self._session() as session:
            try:
                if not await self._is_there(session, image):
                    await self._build(session, image, context)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                problem = str(error) or f"it took longer than {_SECONDS:g} s"
                raise ImageNotBuilt(problem=f"{self._socket}: {problem[:300]}.") from error
        return image

    def _check(self, build: ImageBuild) -> None:
        for image in build.images:
            if image != _EMPTY and not is_allowed(image, self._images):
                raise ImageNotAllowed(image=image)
        if build.fetches and not self._has_network:
            problem = "ADD reads an address, and images are built without a network here"
            raise ImageNotBuilt(problem=f"{problem} (PROCTOR_WORKER_SANDBOX_BUILDS=network allows it).")

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        connector = aiohttp.UnixConnector(self._socket)
        async with aiohttp.ClientSession("http://localhost", connector=connector, timeout=timeout) as session:
            yield session

    async def _is_there(self, session: aiohttp.ClientSession, image: str) -> bool:
        async with session.get(f"/images/{image}/json") as answer:
            if answer.status not in (_OK, _NOT_FOUND):
                raise ImageNotBuilt(problem=await _refusal(answer))
            return answer.status == _OK

    async def _network(self, session: aiohttp.ClientSession) -> dict[str, str]:
        """podman takes numbers, and gives RUN the machine's own network unless it is asked for another."""
        async with session.get("/version") as answer:
            is_podman = _is_podman(_read(await answer.read()))
        asked = {"nsoptions": json.dumps([_OWN_NETWORK])} if is_podman else {}
        if not self._has_network:
            asked["networkmode"] = _DISABLED if is_podman else "none"
        return asked

    async def _build(self, session: aiohttp.ClientSession, image: str, context: bytes) -> None:
        asked = {"t": image, "rm": "1", "forcerm": "1", "version": "1", "labels": json.dumps({LABEL: "1"})}
        asked |= await self._network(session)
        kind = {"Content-Type": "application/x-tar"}
        async with session.post("/build", params=asked, data=context, headers=kind) as answer:
            if answer.status != _OK:
                raise ImageNotBuilt(problem=await _refusal(answer))
            printed: list[str] = []
            async for line in answer.content:
                said = _read(line)
                printed = [*printed, str(said.get("stream", "")).strip()][-_SHOWN_LINES:]
                if "error" in said:
                    last = "; ".join(each for each in printed if each)
                    raise ImageNotBuilt(problem=f"{said['error']} ({last})"[:_SHOWN_CHARACTERS])


def _is_podman(version: dict[str, Any]) -> bool:
    return any(each.get("Name") == _PODMAN for each in version.get("Components") or ())


async def _refusal(answer: aiohttp.ClientResponse) -> str:
    return str(_read(await answer.read()).get("message", answer.reason))[:_SHOWN_CHARACTERS]


def _read(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
