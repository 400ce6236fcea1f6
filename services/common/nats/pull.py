"""Pulls from one consumer of JetStream."""

import asyncio

import nats
from nats.aio.msg import Msg

from services.common.lifecycle import cancellation_kept
from services.common.nats.connection import FIRST_BACKOFF_SECONDS, TRANSIENT_NATS
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import ConsumerSpec
from services.common.structured_logs import error_text, get_logger

log = get_logger()

# How often to check that a silent consumer exists: pulls of a busy one are empty after each batch.
_CHECK_SECONDS = 1.0


class Puller:
    """Pulls from one consumer, over outages and wiped streams."""

    def __init__(self, jetstream: JetStream, spec: ConsumerSpec) -> None:
        self._jetstream = jetstream
        self._spec = spec
        self._subscription: nats.js.JetStreamContext.PullSubscription | None = None
        self._checked_at = float("-inf")

    @property
    def ack_wait_seconds(self) -> float:
        """The ack wait of the consumer; before the first fetch, that of the settings."""
        return self._jetstream.ack_wait_seconds(self._spec)

    async def fetch(self, batch: int, timeout_seconds: float) -> list[Msg]:
        """Pulls up to `batch` messages; an empty list when none came in time or the server is away."""
        with cancellation_kept():
            return await self._fetch(batch, timeout_seconds)

    async def _fetch(self, batch: int, timeout_seconds: float) -> list[Msg]:
        try:
            if self._subscription is None:
                self._subscription = await self._jetstream.subscribe_pull(self._spec)
            return await self._subscription.fetch(batch, timeout=timeout_seconds)
        except (TimeoutError, nats.errors.TimeoutError):
            # A wiped consumer answers nothing, as one without messages does.
            await self._check()
            return []
        except TRANSIENT_NATS as error:
            log.info("pull repeated", consumer=self._spec.durable, error=error_text(error))
            await self._drop()
            # An error comes at once, so that without a pause this is a busy loop.
            await asyncio.sleep(FIRST_BACKOFF_SECONDS * 8)
            return []

    async def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._subscription is None or now < self._checked_at + _CHECK_SECONDS:
            return
        self._checked_at = now
        try:
            await self._subscription.consumer_info()
        except TRANSIENT_NATS:
            await self._drop()

    async def _drop(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        try:
            await subscription.unsubscribe()
        except TRANSIENT_NATS as error:
            log.debug("unsubscribe failed", consumer=self._spec.durable, error=repr(error))

    async def close(self) -> None:
        """Ends the subscription; the consumer stays."""
        await self._drop()
