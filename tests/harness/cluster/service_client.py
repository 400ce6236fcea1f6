"""Calls the Service of the gateway in a rendered cluster."""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import aiohttp

from tests.harness.cluster.rendered_cluster import RenderedCluster


class ServiceClient:
    """The gateway's Service, as a client with a key calls it: each time another ready pod."""

    def __init__(self, cluster: RenderedCluster) -> None:
        self._cluster = cluster
        self._headers = {"Authorization": "Bearer secret-key-of-ann"}

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, body)

    async def ask_until_over(self, job: str) -> dict[str, Any]:
        """No request may fail."""
        while True:
            found = await self._call("GET", f"/api/v1/benchmarking/results/{job}")
            if found["status"] in ("completed", "failed", "cancelled"):
                return found
            await asyncio.sleep(0.1)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        pods = self._cluster.ready_pods(self._cluster.service("proctor-gateway"))
        url = f"http://{secrets.choice(pods).address}:8080{path}"
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.request(method, url, json=body) as response,
        ):
            assert response.status < 300, await response.text()
            return dict(await response.json())
