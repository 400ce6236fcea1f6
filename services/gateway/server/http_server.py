"""uvicorn inside our own event loop; the port and the signals are handled outside of it."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from services.common.process import bound_socket
from services.gateway.server.connections import BoundedConnection

# Nothing here is shown inside other pages, and nothing is guessed to be a script.
_HEADERS = [
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
]


# Enough for the control frames that browsers send; uvicorn's default is 16 MiB.
_MAX_SOCKET_BYTES = 4096


class _Server(uvicorn.Server):
    """Leaves signals to `lifecycle` and reports when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class HttpServer:
    """A running HTTP server."""

    def __init__(self, server: _Server, listener: socket.socket) -> None:
        self._server = server
        self.port: int = listener.getsockname()[1]
        self._serving = asyncio.create_task(server.serve([listener]), name="http server")

    @classmethod
    async def start(
        cls, address: str, app: ASGIApp, *, drain_seconds: float, max_connections: int
    ) -> "HttpServer":
        listener = bound_socket(address)
        config = uvicorn.Config(
            app,
            http=partial(BoundedConnection, max_connections=max_connections),  # type: ignore[arg-type]  # called only
            # Pages send nothing over their sockets.
            ws_max_size=_MAX_SOCKET_BYTES,
            # A page that gets a few kB five times a second costs less than the CPU to pack them.
            ws_per_message_deflate=False,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            # The connection identifies the peer; a header could name any.
            proxy_headers=False,
            headers=_HEADERS,
            timeout_graceful_shutdown=drain_seconds,  # type: ignore[arg-type]  # passed on to asyncio.wait_for
        )
        server = _Server(config)
        running = cls(server, listener)
        await server.listening.wait()
        return running

    async def wait_failed(self) -> None:
        """Returns when the server has ended."""
        # Shielded: the end of this wait must not cut off running requests.
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Refuses new connections and waits for running requests up to their limit."""
        self._server.should_exit = True
        await self._serving
