"""A pull that waits at the server for minutes: an idle worker asks rarely and is answered at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import orjson
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.common.nats.connection import TRANSIENT_NATS, RetryBackoff
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import ConsumerSpec
from services.common.structured_logs import get_logger

# A longer pull means fewer requests of idle workers. The heartbeat below detects a lost pull earlier.
_WAITS_SECONDS = 120.0
# The server sends a heartbeat this often; after two missing ones the pull is sent anew.
_HEARTBEAT_SECONDS = 15.0
# How long `fetch` waits for news of the pull.
_FETCH_SECONDS = 1.0
# How long the next fetch lets a forward end that is under way.
_FORWARD_SECONDS = 0.5
# Waits between tries after an error. The upper bound: a worker is back at most five seconds after the server.
_FIRST_BACKOFF_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 5.0
_NANOSECONDS = 1_000_000_000
_REQUEST = orjson.dumps(
    {
        # One message: another worker could do the work for which this one has no room.
        "batch": 1,
        "expires": int(_WAITS_SECONDS * _NANOSECONDS),
        "idle_heartbeat": int(_HEARTBEAT_SECONDS * _NANOSECONDS),
    }
)
# Status codes of JetStream, in the header of messages without a body.
_HEARTBEAT = "100"
# Nothing came until the pull expired; a new one may bring something.
_NOTHING = frozenset({"404", "408"})

log = get_logger()


class LongPull:
    """Pulls one message at a time from a durable consumer, over outages and wiped streams.

    Use it from one task. A pull cannot be taken back: the server may have sent its message already. While the
    pull is on hold, a message that arrives is passed to `forward`, which sends it to another worker. The next
    fetch returns a message that was not forwarded.
    """

    def __init__(
        self, jetstream: JetStream, spec: ConsumerSpec, forward: Callable[[Msg], Awaitable[None]]
    ) -> None:
        self._jetstream = jetstream
        self._spec = spec
        self._forward = forward
        self._is_on_hold = False
        self._held: Msg | None = None
        self._forwarding: asyncio.Task[None] | None = None
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{spec.stream.name}.{spec.durable}"
        self._inbox: Subscription | None = None
        self._received: deque[Msg] = deque()
        self._news = asyncio.Event()
        # Whether the consumer is there, as far as known.
        self._is_made = False
        self._is_waiting = False
        self._silent_until = 0.0
        self._reconnects = 0
        self._backoff = RetryBackoff(_FIRST_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS)

    async def fetch(self) -> Msg | None:
        """The next message; None where none came within a second, while the pull goes on waiting."""
        self._is_on_hold = False
        try:
            message = await self._take_back() or await self._fetch()
        except TRANSIENT_NATS as error:
            log.info("pull repeated", consumer=self._spec.durable, error=repr(error))
            await self._close()
            # After the close: an inbox that stays open would collect answers of the lost pull.
            await asyncio.sleep(self._backoff.next())
            return None
        self._backoff.reset()
        return message

    def hold(self) -> Msg | None:
        """Holds until the next `fetch`; gives the message that has come already."""
        self._is_on_hold = True
        try:
            return self._take()
        except ConnectionError:
            return None  # the consumer is gone; the next fetch makes it anew

    async def _take_back(self) -> Msg | None:
        """The message that came on hold, if it is not forwarded yet."""
        if self._forwarding is None:
            return None
        # A forward that is cut off may have reached the stream, and its shard would be there twice.
        await asyncio.wait((self._forwarding,), timeout=_FORWARD_SECONDS)
        # Waited for below, since a cancelled publish may still end well.
        self._forwarding.cancel()
        await asyncio.wait((self._forwarding,))
        held, self._held, self._forwarding = self._held, None, None
        return held

    async def _forward_held(self, message: Msg) -> None:
        await self._forward(message)
        self._held = None

    async def _fetch(self) -> Msg | None:
        if not self._is_made:
            await self._jetstream.make_consumer(self._spec)
            self._is_made = True
        if self._inbox is None:
            connection = self._jetstream.connection
            self._inbox = await connection.subscribe(connection.new_inbox(), cb=self._receive)
        if not self._is_waiting:
            await self._send(self._inbox)
        elif self._is_lost():
            raise ConnectionError("the server does not answer the pull")
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return None
        return self._take()

    async def _send(self, inbox: Subscription) -> None:
        await self._jetstream.connection.publish(self._subject, _REQUEST, reply=inbox.subject)
        self._is_waiting = True
        # A new connection has no pulls, and the server does not announce that.
        self._reconnects = self._jetstream.reconnects
        self._on_message()

    def _take(self) -> Msg | None:
        """The message received, if any; raises for a status that says that the consumer is gone."""
        self._news.clear()
        while self._received:
            message = self._received.popleft()
            headers = message.headers or {}
            status = headers.get("Status", "")
            if status == _HEARTBEAT:
                continue
            self._is_waiting = False
            if not status:
                return message
            # As 409: the consumer or its stream was deleted, or the leader of the consumer changed.
            if status not in _NOTHING:
                self._is_made = False
                raise ConnectionError(f"the pull ended: {status} {headers.get('Description', '')}")
        return None

    async def _receive(self, message: Msg) -> None:
        self._on_message()
        if self._is_on_hold and not (message.headers or {}).get("Status"):
            self._is_waiting, self._held = False, message
            # In a task: this callback runs in the reader of the connection, which must not wait.
            self._forwarding = asyncio.create_task(self._forward_held(message), name="forward shard")
            return
        self._received.append(message)
        self._news.set()

    def _on_message(self) -> None:
        self._silent_until = asyncio.get_running_loop().time() + 2 * _HEARTBEAT_SECONDS

    def _is_lost(self) -> bool:
        """A server forgets the pulls of a connection that ended."""
        is_silent = asyncio.get_running_loop().time() > self._silent_until
        return is_silent or self._jetstream.reconnects != self._reconnects

    async def _close(self) -> None:
        inbox, self._inbox, self._is_waiting, self._is_made = self._inbox, None, False, False
        # A status of the pull that ends here would be taken for one of the next.
        self._received = deque(
            message for message in self._received if not (message.headers or {}).get("Status")
        )
        if not self._received:
            self._news.clear()
        if inbox is None:
            return
        try:
            await inbox.unsubscribe()
        except TRANSIENT_NATS as error:
            log.debug("unsubscribe failed", consumer=self._spec.durable, error=repr(error))
