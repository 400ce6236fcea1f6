"""Probes whether streams and buckets take messages: after a full disk a stream may refuse all, for ever."""

import asyncio
from collections.abc import Iterable, Mapping

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from proctor.values.messaging import probe_subject
from services.common.metrics import STREAM_WRITABLE
from services.common.structured_logs import error_text, get_logger

log = get_logger()

# The words of a server whose stream has reached its size: it takes messages again when some are acknowledged.
_FULL = "maximum bytes exceeded"
_SILENT = "it stores no message, as after its disk was full"
_WRITE_SECONDS = 3.0


class StreamProbes:
    """Writes an empty message to each, on a subject that no consumer reads, and removes it at once."""

    def __init__(self, connection: Client) -> None:
        self._jetstream = connection.jetstream(timeout=_WRITE_SECONDS)
        # By the names of streams and buckets that take no message: why.
        self.refused: Mapping[str, str] = {}
        self._written: dict[str, int] = {}

    async def probe(self, names: Iterable[str]) -> Mapping[str, int]:
        """The sequence numbers of the probes that were stored; of the others nothing is refused any more.

        Raises an error of nats-py where the server does not answer; then nothing new is known.
        """
        probed = list(names)
        self._written = {}
        reasons = await asyncio.gather(*(self._refusal(name) for name in probed))
        refused = {name: reason for name, reason in zip(probed, reasons, strict=True) if reason}
        for name in probed:
            STREAM_WRITABLE.labels(name).set(name not in refused)
        for name in {*probed, *self.refused}:
            if refused.get(name) != self.refused.get(name):
                self._log_change(name, refused.get(name))
        for name in self.refused.keys() - probed:
            STREAM_WRITABLE.labels(name).set(1)
        self.refused = refused
        return self._written

    async def _refusal(self, name: str) -> str:
        """Why it takes no message; empty if it does."""
        try:
            await self._write(name)
        except (NoStreamResponseError, NotFoundError):
            # It was deleted just now, and is made again.
            return ""
        except APIError as error:
            reason = error.description or error_text(error)
            return "" if reason == _FULL else reason
        except TimeoutError:
            return await self._silence(name)
        return ""

    async def _silence(self, name: str) -> str:
        """A second try. Nothing else shows that a stream is broken: a write that fails is never answered."""
        # Raises where the server answers nothing at all.
        await self._jetstream.account_info()
        try:
            await self._write(name)
        except TimeoutError:
            return _SILENT
        except NatsError:
            return ""
        return ""

    async def _write(self, name: str) -> None:
        subject = probe_subject(name)
        stored = await self._jetstream.publish(subject, timeout=_WRITE_SECONDS)
        self._written[name] = stored.seq
        await self._jetstream.purge_stream(name, subject=subject)

    def _log_change(self, name: str, reason: str | None) -> None:
        if reason:
            log.error("stream takes no messages", stream=name, error=reason)
        else:
            log.info("stream takes messages again", stream=name)
