"""Key-value buckets of JetStream, over outages and wipes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nats.js.errors import APIError, KeyWrongLastSequenceError, NotFoundError
from nats.js.kv import KeyValue

from services.common.lifecycle import cancellation_kept
from services.common.nats.connection import (
    FIRST_BACKOFF_SECONDS,
    MAX_BACKOFF_SECONDS,
    REQUEST_SECONDS,
    TRANSIENT_NATS,
    RetryBackoff,
)
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import BucketSpec
from services.common.structured_logs import error_text, get_logger

log = get_logger()

# How late a lost watch is noticed at most: the server does not announce its end.
_WATCH_POLL_SECONDS = 1.0
# A new watch sends the whole bucket; thousands of workers must not ask for it each second.
_MAX_WATCH_BACKOFF_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BucketEntry:
    """A key as it is now; no value means that it was deleted or expired. `put_at` is the server's time."""

    key: str
    value: bytes | None
    put_at: datetime


class Bucket:
    """A key-value bucket, over outages and wipes."""

    def __init__(self, jetstream: JetStream, spec: BucketSpec) -> None:
        self._jetstream = jetstream
        self._spec = spec
        self._opened: KeyValue | None = None

    async def put(self, key: str, value: bytes, *, ttl_seconds: float | None = None) -> None:
        """Sets a key, for so long; raises one of TRANSIENT_NATS when the server or the bucket is away."""
        await self._jetstream.put(self._spec, key, value, ttl_seconds)

    async def revision(self, key: str) -> int:
        """Revision of the key's last change; 0 where it has no value. Raises one of TRANSIENT_NATS."""
        try:
            return int((await (await self._open()).get(key)).revision or 0)
        except NotFoundError:
            return 0

    async def update(self, key: str, value: bytes, *, revision: int) -> bool:
        """Sets a key unless it was changed after the revision: then False. Raises one of TRANSIENT_NATS."""
        try:
            await (await self._open()).update(key, value, last=revision)
        except KeyWrongLastSequenceError:
            return False
        return True

    async def delete(self, key: str) -> None:
        """Removes a key; raises one of TRANSIENT_NATS when the server or the bucket is away."""
        await (await self._open()).delete(key)

    async def get(self, key: str) -> bytes | None:
        """The value, or None where there is none (any more)."""
        bucket = await self._open()
        try:
            entry = await bucket.get(key)
        except NotFoundError:
            return None
        return entry.value

    async def _open(self) -> KeyValue:
        """Asked for once: a handle is the bucket's name, so it serves a bucket that is made again too."""
        if self._opened is None:
            self._opened = await self._jetstream.open_bucket(self._spec)
        return self._opened

    async def entries(self, key_filter: str = ">") -> dict[str, bytes]:
        """The keys that match, as they are now."""
        bucket = await self._open()
        found: dict[str, bytes] = {}
        with cancellation_kept():
            watcher = await bucket.watch(key_filter)
        try:
            # None is the mark of nats-py behind the last key that was there at first.
            while (entry := await _next_update(watcher, REQUEST_SECONDS)) is not None:
                if entry.operation is None and entry.value is not None:
                    found[entry.key] = entry.value
        finally:
            await _stop(watcher)
        return found

    async def watch(self, key_filter: str = ">") -> AsyncIterator[BucketEntry]:
        """Each key that matches as it is now and each change after, for ever.

        After an outage all these keys come again.
        """
        backoff = RetryBackoff(MAX_BACKOFF_SECONDS, _MAX_WATCH_BACKOFF_SECONDS)
        while True:
            try:
                async for entry in self._watch_once(key_filter, backoff):
                    yield entry
            except TRANSIENT_NATS as error:
                log.info("watch repeated", bucket=self._spec.name, error=error_text(error))
                await asyncio.sleep(backoff.next())
            # A bucket that is made anew again and again must not become a busy loop.
            await asyncio.sleep(FIRST_BACKOFF_SECONDS * 4)

    async def _watch_once(self, key_filter: str, backoff: RetryBackoff) -> AsyncIterator[BucketEntry]:
        bucket = await self._open()
        # Before the watch: a bucket that is made anew in between is noticed at the next check.
        born = await self._jetstream.bucket_generation(self._spec)
        with cancellation_kept():
            watcher = await bucket.watch(key_filter)
        backoff.reset()
        loop = asyncio.get_running_loop()
        reconnects, checked = self._jetstream.reconnects, loop.time()
        try:
            while True:
                try:
                    entry = await _next_update(watcher, _WATCH_POLL_SECONDS)
                except (TimeoutError, APIError):
                    if self._jetstream.reconnects != reconnects:
                        return
                    if loop.time() < checked + self._jetstream.bucket_check_seconds:
                        continue
                    if await self._jetstream.bucket_generation(self._spec) != born:
                        return
                    checked = loop.time()
                    continue
                if entry is not None:
                    is_gone = entry.operation is not None
                    yield BucketEntry(entry.key, None if is_gone else entry.value, entry.created)
        finally:
            await _stop(watcher)


async def _next_update(watcher: KeyValue.KeyWatcher, seconds: float) -> Any:  # the library types it wrongly
    """The next entry; None after the last one that was there at first. Raises a TimeoutError of nats-py."""
    with cancellation_kept():
        return await watcher.updates(timeout=seconds)


async def _stop(watcher: KeyValue.KeyWatcher) -> None:
    # A failure here must not take the place of the cancellation that led here.
    with contextlib.suppress(*TRANSIENT_NATS):
        await watcher.stop()
