"""Pulls from one consumer of JetStream by a request that waits at the server for minutes."""

import asyncio
from collections import deque
from collections.abc import Callable

import orjson
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.common.nats.connection import TRANSIENT_NATS, RetryBackoff
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import ConsumerSpec
from services.common.structured_logs import error_text, get_logger

# A longer request means fewer of them while nothing comes. The heartbeat below detects a lost one earlier.
_WAITS_SECONDS = 120.0
# The server sends a heartbeat this often; after two missing ones the request is sent anew.
_HEARTBEAT_SECONDS = 15.0
# Waits between tries after an error. The upper bound: back at most five seconds after the server.
_FIRST_BACKOFF_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 5.0
_NANOSECONDS = 1_000_000_000
# Status codes of JetStream, in the header of messages without a body.
_HEARTBEAT = "100"
# Nothing came until the request expired; a new one may bring something.
_NOTHING = frozenset({"404", "408"})

log = get_logger()


def _queues(_: Msg) -> bool:
    return False


class Puller:
    """Pulls from a durable consumer, over outages and wiped streams. Use it from one task.

    A request cannot be taken back: the server may have sent its messages already. So up to `batch` messages
    may come while nobody fetches, and wait here, or for `takes`, which says of each whether it has taken it.
    """

    def __init__(
        self, jetstream: JetStream, spec: ConsumerSpec, batch: int = 1, takes: Callable[[Msg], bool] = _queues
    ) -> None:
        self._jetstream = jetstream
        self._spec = spec
        self._batch = batch
        self._takes = takes
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{spec.stream.name}.{spec.durable}"
        self._request = orjson.dumps(
            {
                "batch": batch,
                "expires": int(_WAITS_SECONDS * _NANOSECONDS),
                "idle_heartbeat": int(_HEARTBEAT_SECONDS * _NANOSECONDS),
            }
        )
        self._inbox: Subscription | None = None
        self._received: deque[Msg] = deque()
        self._news = asyncio.Event()
        # Whether the consumer is there, as far as known.
        self._is_made = False
        # Messages of the request that have not come yet.
        self._awaited = 0
        # The status that ended the request, where that means that the consumer is gone.
        self._end = ""
        self._silent_until = 0.0
        self._reconnects = 0
        self._backoff = RetryBackoff(_FIRST_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS)

    @property
    def ack_wait_seconds(self) -> float:
        """The ack wait of the consumer; before the first fetch, that of the settings."""
        return self._jetstream.ack_wait_seconds(self._spec)

    async def fetch(self, most: int, timeout_seconds: float) -> list[Msg]:
        """Up to `most` messages that have come; none where none came in time or the server is away.

        The request goes on waiting.
        """
        try:
            await self._wait(timeout_seconds)
        except TRANSIENT_NATS as error:
            log.info("pull repeated", consumer=self._spec.durable, error=error_text(error))
            await self._end_request()
            # After that: an inbox that stays open would collect answers of the lost request.
            await asyncio.sleep(self._backoff.next())
            return []
        self._backoff.reset()
        return self.received(most)

    def received(self, most: int) -> list[Msg]:
        """Up to `most` messages that have come already."""
        found = [self._received.popleft() for _ in range(min(most, len(self._received)))]
        if not self._received:
            self._news.clear()
        return found

    async def close(self) -> None:
        """Ends the request and gives back what nobody fetched; the consumer stays.

        Now and then a message is on its way inside the server, and comes again after its ack deadline.
        """
        inbox = self._inbox
        try:
            if inbox is not None:
                # What the server has sent before it knows of the end arrives first.
                self._inbox, self._awaited = None, 0
                await inbox.drain()
            for message in self.received(len(self._received)):
                await message.nak()
        except TRANSIENT_NATS as error:
            log.debug("pull not ended", consumer=self._spec.durable, error=error_text(error))

    async def _wait(self, seconds: float) -> None:
        """Until something has come, or the time is over."""
        if self._received:
            return
        if self._end:
            raise ConnectionError(f"the pull ended: {self._end}")
        if not self._is_made:
            await self._jetstream.make_consumer(self._spec)
            self._is_made = True
        if self._inbox is None:
            connection = self._jetstream.connection
            self._inbox = await connection.subscribe(connection.new_inbox(), cb=self._receive)
        if not self._awaited:
            await self._send(self._inbox)
        elif self._is_lost():
            raise ConnectionError("the server does not answer the pull")
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    async def _send(self, inbox: Subscription) -> None:
        # Before the request, which may be answered at once.
        self._news.clear()
        self._awaited = self._batch
        # A new connection has no requests, and the server does not announce that.
        self._reconnects = self._jetstream.reconnects
        self._on_message()
        await self._jetstream.connection.publish(self._subject, self._request, reply=inbox.subject)

    async def _receive(self, message: Msg) -> None:
        self._on_message()
        headers = message.headers or {}
        status = headers.get("Status", "")
        if status == _HEARTBEAT:
            return
        if status:
            self._awaited = 0
            # As 409: the consumer or its stream was deleted, or the leader of the consumer changed.
            if status not in _NOTHING:
                self._is_made = False
                self._end = f"{status} {headers.get('Description', '')}"
        else:
            self._awaited -= 1
            if self._takes(message):
                return
            self._received.append(message)
        self._news.set()

    def _on_message(self) -> None:
        self._silent_until = asyncio.get_running_loop().time() + 2 * _HEARTBEAT_SECONDS

    def _is_lost(self) -> bool:
        """A server forgets the requests of a connection that ended."""
        is_silent = asyncio.get_running_loop().time() > self._silent_until
        return is_silent or self._jetstream.reconnects != self._reconnects

    async def _end_request(self) -> None:
        inbox, self._inbox = self._inbox, None
        self._awaited, self._is_made, self._end = 0, False, ""
        if inbox is None:
            return
        try:
            await inbox.unsubscribe()
        except TRANSIENT_NATS as error:
            log.debug("unsubscribe failed", consumer=self._spec.durable, error=error_text(error))
