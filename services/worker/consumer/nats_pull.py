"""Pulls one shard at a time; what comes while the worker has no room is for another worker to execute."""

import asyncio
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg

from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.specs import ConsumerSpec

# How long `fetch` waits for news of the pull.
_FETCH_SECONDS = 1.0
# How long the next fetch lets a forward end that is under way.
_FORWARD_SECONDS = 0.5


class LongPull:
    """Pulls one message at a time from a durable consumer, over outages and wiped streams.

    Use it from one task. A pull cannot be taken back: the server may have sent its message already. While the
    pull is on hold, a message that arrives is passed to `forward`, which sends it to another worker. The next
    fetch returns a message that was not forwarded.
    """

    def __init__(
        self, jetstream: JetStream, spec: ConsumerSpec, forward: Callable[[Msg], Awaitable[None]]
    ) -> None:
        # One message: another worker could do the work for which this one has no room.
        self._puller = Puller(jetstream, spec, batch=1, takes=self._take_on_hold)
        self._forward = forward
        self._is_on_hold = False
        self._held: Msg | None = None
        self._forwarding: asyncio.Task[None] | None = None

    async def fetch(self) -> Msg | None:
        """The next message; None where none came within a second, while the pull goes on waiting."""
        self._is_on_hold = False
        if held := await self._take_back():
            return held
        found = await self._puller.fetch(1, _FETCH_SECONDS)
        return found[0] if found else None

    def hold(self) -> Msg | None:
        """Holds until the next `fetch`; gives the message that has come already."""
        self._is_on_hold = True
        found = self._puller.received(1)
        return found[0] if found else None

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

    def _take_on_hold(self, message: Msg) -> bool:
        if not self._is_on_hold:
            return False
        self._held = message
        # In a task: this is called in the reader of the connection, which must not wait.
        self._forwarding = asyncio.create_task(self._forward_held(message), name="forward shard")
        return True

    async def _forward_held(self, message: Msg) -> None:
        await self._forward(message)
        self._held = None
