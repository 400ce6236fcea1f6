"""A connection to NATS that outlives outages."""

import asyncio

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoServersError

from proctor.values.messaging import inbox_prefix_of
from services.common.errors import DependencyUnavailable
from services.common.nats.access import NatsAccess
from services.common.structured_logs import get_logger

log = get_logger()

# An outage ends as one of these; asyncio's own timeout is what nats-py raises for some calls.
TRANSIENT_NATS: tuple[type[Exception], ...] = (NatsError, asyncio.TimeoutError, ConnectionError, OSError)
_CONNECT_PATIENCE_SECONDS = 20.0
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
REQUEST_SECONDS = 5.0


class NatsAway(DependencyUnavailable):
    """NATS does not answer at {address}. Start it or correct PROCTOR_NATS_URL."""


async def connect_nats(access: NatsAccess | str, name: str) -> Client:
    """A connection that reconnects for ever. The first attempt lasts up to 20 seconds."""
    access = NatsAccess.of_url(access) if isinstance(access, str) else access

    async def quiet(_: Exception) -> None:
        """Publishing and pulling raise failures themselves; the callback would only repeat them."""

    async def reconnected() -> None:
        log.info("nats reconnected")

    try:
        connecting = nats.connect(
            list(access.urls),
            name=name,
            inbox_prefix=inbox_prefix_of(access.urls[0]),
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            connect_timeout=2,
            ping_interval=10,
            max_outstanding_pings=2,
            pending_size=64 * 1024 * 1024,
            error_cb=quiet,
            reconnected_cb=reconnected,
            **access.options(),
        )
        return await asyncio.wait_for(connecting, _CONNECT_PATIENCE_SECONDS)
    except (TimeoutError, NoServersError, OSError) as error:
        raise NatsAway(address=access.addresses) from error
