"""The servers that a DSN of Postgres names: which one takes writes, and whether one has vanished."""

import asyncio
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

# Another server may answer where one raises these.
_OF_ONE_SERVER: tuple[type[Exception], ...] = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.TargetServerAttributeNotMatched,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
)
_CONNECT_SECONDS = 5.0
# A machine that vanishes closes no connection. Without these Postgres keeps its sessions and their locks for
# two hours, and a client waits for its own timeouts. Both sides notice within half a minute.
_IDLE_SECONDS, _INTERVAL_SECONDS, _PROBES, _UNACKNOWLEDGED_SECONDS = 10, 5, 3, 20
_SERVER_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "tcp_keepalives_idle": str(_IDLE_SECONDS),
        "tcp_keepalives_interval": str(_INTERVAL_SECONDS),
        "tcp_keepalives_count": str(_PROBES),
        "tcp_user_timeout": f"{_UNACKNOWLEDGED_SECONDS}s",
    }
)


class PostgresServers:
    """Connects to the server that takes writes. The one that did last is asked first.

    Each server has 5 s of its own to answer: asyncpg gives its timeout to all of them together, so that one
    that vanished would leave none for the next.
    """

    def __init__(self, dsn: str) -> None:
        self._dsns = _split(dsn)

    async def connect(self, *_: object, **options: Any) -> asyncpg.Connection:
        """Takes the options of `asyncpg.connect`. The DSN that a pool passes on is ignored.

        Raises what the last server raised, where none of them takes writes.
        """
        settings = {**_SERVER_SETTINGS, **(options.pop("server_settings", None) or {})}
        options = {"timeout": _CONNECT_SECONDS, **options, "server_settings": settings}
        failure: Exception | None = None
        wanted = SessionAttribute("read-write")
        for dsn in tuple(self._dsns):
            try:
                connection: asyncpg.Connection = await asyncpg.connect(
                    dsn, target_session_attrs=wanted, **options
                )
            except _OF_ONE_SERVER as error:
                failure = error
                continue
            self._dsns.remove(dsn)
            self._dsns.insert(0, dsn)
            _notice_loss(connection)
            return connection
        assert failure is not None
        raise failure


def _split(dsn: str) -> list[str]:
    """One DSN for each host before the path; what is written otherwise is left to asyncpg."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return [dsn]
    user, at, hosts = parts.netloc.rpartition("@")
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]


def _notice_loss(connection: asyncpg.Connection) -> None:
    """Sets on the socket of the client what the settings above set on the server's."""
    transport = connection._transport  # type: ignore[attr-defined]  # noqa: SLF001  # there is no other way to the socket
    of_client = transport.get_extra_info("socket")
    if of_client is None or of_client.family == socket.AF_UNIX:
        return
    of_client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limits = {
        "TCP_KEEPIDLE": _IDLE_SECONDS,
        "TCP_KEEPINTVL": _INTERVAL_SECONDS,
        "TCP_KEEPCNT": _PROBES,
        "TCP_USER_TIMEOUT": _UNACKNOWLEDGED_SECONDS * 1000,
    }
    for name, value in limits.items():
        # Not every system has all of them.
        if option := getattr(socket, name, None):
            of_client.setsockopt(socket.IPPROTO_TCP, option, value)
