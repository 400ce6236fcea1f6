"""A connection to NATS that outlives outages."""

import asyncio
import random
import ssl
from collections.abc import Callable
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoServersError
from nats.js.api import Header

from proctor.values.messaging import inbox_prefix_of
from services.common.errors import DependencyUnavailable
from services.common.lifecycle import cancellation_kept
from services.common.metrics import NATS_CONNECTED, NATS_RECONNECTS
from services.common.nats.access import NatsAccess, NatsFileUnusable
from services.common.structured_logs import get_logger

log = get_logger()

# An outage ends as one of these; asyncio's own timeout is what nats-py raises for some calls.
TRANSIENT_NATS: tuple[type[Exception], ...] = (NatsError, asyncio.TimeoutError, ConnectionError, OSError)
# As with Postgres: servers that start together may need that long, and a user sees soon what is missing.
_CONNECT_TIMEOUT_SECONDS = 20.0
# A publish that failed by chance loses little time; a server that is away gets one try a second.
FIRST_BACKOFF_SECONDS = 0.05
MAX_BACKOFF_SECONDS = 1.0
# A new leader of a stream is elected in some seconds; an answer that takes longer is lost.
REQUEST_SECONDS = 5.0
# Where a message of a stream is acknowledged.
_ACKS = "$JS.ACK."


class NatsAway(DependencyUnavailable):
    """NATS does not answer at {address}. Start it or correct PROCTOR_NATS_URL."""


class RetryBackoff:
    """Pauses between tries. They double, and each is drawn between a half and the whole of its bound.

    Thousands of clients that failed at the same moment would otherwise ask again at the same moment, and keep
    a server busy that cannot answer all of them in time.
    """

    def __init__(self, first_seconds: float, max_seconds: float) -> None:
        self._first = first_seconds
        self._max = max_seconds
        self._bound = first_seconds

    def next(self) -> float:
        bound, self._bound = self._bound, min(2 * self._bound, self._max)
        return random.uniform(bound / 2, bound)

    def reset(self) -> None:
        """Begins with the first pause again, as after a success."""
        self._bound = self._first


class _Received(Msg):
    """A message as it comes, without a header that would make a stored one look like the end of a pull.

    A real status of the server cannot be acknowledged. A process that may store messages chooses their
    headers, and a message that is taken for a status would never be read or acknowledged.
    """

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        if self.headers and self.reply.startswith(_ACKS):
            self.headers.pop(Header.STATUS.value, None)


class CancellableClient(Client):
    """A client whose requests end in CancelledError when their task is cancelled, and whose TLS is renewed.

    nats-py waits for replies with `asyncio.wait_for`. In Python 3.11 a reply that is ready together with the
    cancellation hides it, and the loop around the request goes on for ever.
    """

    msg_class = _Received
    needs_tls = False
    # None: certificates are not renewed.
    renewed_tls: Callable[[], ssl.SSLContext] | None = None

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """TLS context of the next connection. It is the last one where the files cannot be read."""
        if self.renewed_tls is not None:
            try:
                self.options["tls"] = self.renewed_tls()
            except NatsFileUnusable as error:
                log.warning("certificates for nats not renewed", message=error.message)
        return super().ssl_context

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002  # those of the library
        """Refuses a server without TLS: nats-py would go on and send the password in plain text."""
        if initial_connection and self.needs_tls and not info.get("tls_required"):
            raise NatsError("the server offers no TLS")
        await super()._process_info(info, initial_connection=initial_connection)

    async def request(self, *args: Any, **options: Any) -> Msg:  # those of the library
        with cancellation_kept():
            return await super().request(*args, **options)

    async def flush(self, *args: Any, **options: Any) -> None:  # those of the library
        with cancellation_kept():
            await super().flush(*args, **options)


async def connect_nats(access: NatsAccess | str, name: str) -> Client:
    """A connection that reconnects for ever. The first attempt lasts up to 20 seconds."""
    access = NatsAccess.of_url(access) if isinstance(access, str) else access

    async def quiet(_: Exception) -> None:
        """Publishing and pulling raise failures themselves; the callback would only repeat them."""

    async def reconnected() -> None:
        log.info("nats reconnected")
        NATS_RECONNECTS.inc()

    client = CancellableClient()
    client.needs_tls = access.needs_tls
    if access.has_tls_files:
        client.renewed_tls = access.tls
    try:
        connecting = client.connect(
            list(access.urls),
            name=name,
            inbox_prefix=inbox_prefix_of(access.urls[0]),
            allow_reconnect=True,
            # Reconnects for ever: otherwise the process would run on without NATS, silently.
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,  # type: ignore[arg-type]  # passed on to asyncio.sleep
            connect_timeout=2,
            # With two pings that may be missing, a dead connection is closed after at most 30 s.
            ping_interval=10,
            max_outstanding_pings=2,
            # Buffer for messages while reconnecting. One message may be larger than the default of 2 MiB.
            pending_size=64 * 1024 * 1024,
            error_cb=quiet,
            reconnected_cb=reconnected,
            **access.options(),
        )
        async with asyncio.timeout(_CONNECT_TIMEOUT_SECONDS):
            await connecting
    except (TimeoutError, NoServersError, OSError) as error:
        raise NatsAway(address=access.addresses) from error
    NATS_CONNECTED.set_function(lambda: client.is_connected)
    return client
