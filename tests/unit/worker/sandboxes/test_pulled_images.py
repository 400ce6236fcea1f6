"""A pull ends once the image is too large, whatever its registry goes on to send."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiodocker.exceptions import DockerError
from aiohttp import web

from services.common.sandboxes.errors import ImageTooLarge
from services.worker.sandboxes.docker.pull import pull_image

GIB = 1024**3


@dataclass
class Registry:
    """A container engine that pulls an image: it says what it downloads, and ends or goes on for ever."""

    lines: list[dict[str, object]]
    is_endless: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for line in self.lines:
                await response.write(json.dumps(line).encode() + b"\r\n")
            if self.is_endless:
                await asyncio.Event().wait()
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise
        return response


def layer(name: str, current: int, total: int) -> dict[str, object]:
    return {"status": "Downloading", "id": name, "progressDetail": {"current": current, "total": total}}


@asynccontextmanager
async def docker_of(registry: Registry, folder: Path) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/images/create", registry.create)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "docker.sock")).start()
    try:
        yield f"{folder}/docker.sock"
    finally:
        await runner.cleanup()


async def test_a_pull_ends_once_its_layers_are_too_large_together(tmp_path: Path) -> None:
    registry = Registry([layer("a", 0, GIB), layer("a", GIB, GIB), layer("b", 1, GIB)], is_endless=True)
    async with docker_of(registry, tmp_path) as docker, asyncio.timeout(30):
        with pytest.raises(ImageTooLarge) as refused:
            await pull_image(docker, "tasks/large:1", max_bytes=2 * GIB - 1)
        # The engine sees that nobody waits for the image.
        await registry.left.wait()
    assert refused.value.facts["image"] == "tasks/large:1"


async def test_a_layer_counts_once_however_often_it_is_reported(tmp_path: Path) -> None:
    registry = Registry([layer("a", part, GIB) for part in range(5)] + [{"status": "Extracting", "id": "a"}])
    async with docker_of(registry, tmp_path) as docker:
        for image in ("tasks/small:1", "host:5000/tasks/small", "tasks/small@sha256:0"):
            await pull_image(docker, image, max_bytes=GIB)
    # Without a tag an engine pulls all that there are.
    assert [each.get("tag") for each in registry.asked] == [None, "latest", None]


async def test_bytes_of_an_unknown_total_count_as_they_come(tmp_path: Path) -> None:
    registry = Registry(
        [layer("a", GIB // 2, 0), layer("a", GIB, 0), layer("a", 2 * GIB, 0)], is_endless=True
    )
    async with docker_of(registry, tmp_path) as docker, asyncio.timeout(30):
        with pytest.raises(ImageTooLarge):
            await pull_image(docker, "tasks/endless:1", max_bytes=GIB)


async def test_what_the_registry_refuses_is_an_error_of_the_engine(tmp_path: Path) -> None:
    async with docker_of(Registry([{"error": "denied"}]), tmp_path) as docker:
        with pytest.raises(DockerError, match="denied"):
            await pull_image(docker, "tasks/secret:1")
