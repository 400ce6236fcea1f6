"""Pulls an image that is not there, of a bounded size and in a bounded time: users name some of them."""

import asyncio
import json
from typing import Any

import aiohttp
from aiodocker.exceptions import DockerError

from services.common.sandboxes.errors import ImageTooLarge

# Of the layers as a registry sends them.
MAX_IMAGE_BYTES = 32 * 1024**3
_PULL_SECONDS = 1800.0
_OK = 200
_FAILED = 500


async def pull_image(unix_socket: str, image: str, *, max_bytes: int = MAX_IMAGE_BYTES) -> None:
    """Raises `ImageTooLarge`, TimeoutError, and errors of the engine.

    The engine ends a pull whose client goes away. aiodocker keeps the connection, so it is not asked.
    """
    url, asked = "http://localhost/images/create", {"fromImage": image, "tag": _tag_of(image)}
    sizes: dict[str, int] = {}
    async with (
        asyncio.timeout(_PULL_SECONDS),
        aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(unix_socket), timeout=aiohttp.ClientTimeout()
        ) as session,
        session.post(url, params={name: value for name, value in asked.items() if value}) as response,
    ):
        if response.status != _OK:
            problem = _read(await response.read()).get("message") or response.reason
            raise DockerError(response.status, str(problem))
        async for line in response.content:
            said = _read(line)
            if "error" in said:
                raise DockerError(_FAILED, str(said["error"]))
            progress = said.get("progressDetail") or {}
            size = progress.get("total") or progress.get("current") or 0
            layer = str(said.get("id", ""))
            sizes[layer] = max(sizes.get(layer, 0), size)
            if sum(sizes.values()) > max_bytes:
                raise ImageTooLarge(image=image, maximum=f"{max_bytes / 1024**3:g} GiB")


def _tag_of(image: str) -> str:
    """Without a tag an engine would pull all that there are."""
    return "" if ":" in image.rpartition("/")[2] or "@" in image else "latest"


def _read(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
