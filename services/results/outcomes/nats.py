"""JetStream: consumes outcomes of all runs, acknowledges them once committed, and publishes progress."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import MsgAlreadyAckdError

from proctor.values.messaging import progress_subject
from proctor.wire.proofs import PROGRESS_PROOF, progress_proof
from proctor.wire.subjects import OUTCOMES
from services.common.bounded_messages import read_message
from services.common.errors import DependencyUnavailable
from services.common.nats.connection import TRANSIENT_NATS
from services.common.nats.pull import Puller
from services.common.postgres import WRONG_DATA
from services.common.structured_logs import get_logger
from services.common.traces import TRACEPARENT, SpanKind, span
from services.results import metrics
from services.results.outcomes.outcome import OutcomeBatch, as_unrecordable, one_by_one
from services.results.outcomes.proto import batch_from_proto, drop_unproved
from services.results.outcomes.record_outcomes import Recorded
from services.results.runs.proto import progress_to_proto
from services.results.runs.run_plan import RecordedProgress

log = get_logger()

# Records the batches of several messages; RecordOutcomes.record is one.
Record = Callable[[Sequence[OutcomeBatch]], Awaitable[Recorded]]

# One batch is collected while the one before is being recorded.
WRITERS = 2
# A batch that takes longer, as slow patterns do, goes on by itself: this is the most in flight.
RECORD_TIMEOUT_SECONDS = 1.0
# Each holds up to 32 MiB of messages, which are larger once they are read.
MAX_BATCHES = 6
# The server may send all of a pull, so that one goes beyond `MAX_BYTES` by four messages at most, and as many
# wait here while no batch is free.
MESSAGES_PER_PULL = 4
# How long a stop waits for a pull without messages.
IDLE_SECONDS = 1.0
# Where messages come one after the other, each batch lingers longer: what it costs is shared by more of them.
BUSY_LINGERS = 4
MAX_BYTES = 32 * 1024 * 1024
# An answer whose values are wrong is wrong however often it is tried.
UNRECORDABLE: tuple[type[Exception], ...] = (*WRONG_DATA, re.error)
ACK_FAILURES: tuple[type[Exception], ...] = (*TRANSIENT_NATS, MsgAlreadyAckdError)
# While Postgres is away the stream fills, and workers wait: back-pressure, no loss.
FIRST_BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class InFlightMessage:
    """A message that is neither acknowledged nor returned yet."""

    message: Msg
    batch: OutcomeBatch
    is_last: bool = False


class NatsOutcomeConsumer:
    """Records a batch when it has `max_outcomes`, or when its first message has waited `linger_seconds`.

    That is `BUSY_LINGERS` times as long where it was there as soon as the batch before was collected, and no
    worker has come to the end of what it executes of a run: the run's next shards may wait for these.
    """

    def __init__(
        self,
        *,
        puller: Puller,
        record: Record,
        max_outcomes: int,
        linger_seconds: float,
        dispatch_proof_key: str,
    ) -> None:
        self._puller = puller
        self._dispatch_proof_key = dispatch_proof_key
        self._record = record
        self._max_outcomes = max_outcomes
        self._linger_seconds = linger_seconds
        self._collecting = asyncio.Lock()
        self._free = asyncio.Semaphore(MAX_BATCHES)
        self._is_stopping = False

    async def run(self) -> None:
        """Runs until `stop`; messages in flight are recorded first."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(WRITERS):
                tasks.create_task(self._write(tasks), name=f"outcome writer {number}")
        # Other replicas record at once what has come meanwhile.
        await self._puller.close()

    def stop(self) -> None:
        """Pulls no more."""
        self._is_stopping = True

    async def _write(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            # Before pulling: a message that must wait here is one that another replica could record.
            await self._free.acquire()
            held = await self._next_batch()
            if held is None:
                self._free.release()
                return
            recording = tasks.create_task(self._finish_batch(held), name="record outcomes")
            # `wait` does not cancel the task: it goes on, and its slot stays taken.
            await asyncio.wait((recording,), timeout=RECORD_TIMEOUT_SECONDS)

    async def _finish_batch(self, held: Sequence[InFlightMessage]) -> None:
        try:
            if held:
                async with self._deadlines_extended(held):
                    await self._record_and_ack(held)
        finally:
            self._free.release()

    async def _next_batch(self) -> list[InFlightMessage] | None:
        """None once the consumer is stopping."""
        async with self._collecting:
            return None if self._is_stopping else await self._collect()

    async def _collect(self) -> list[InFlightMessage]:
        """Waits for a first message, then a little for those that follow it."""
        began = time.monotonic()
        held = await self._pull(IDLE_SECONDS)
        first_at = time.monotonic()
        is_busy = first_at - began < self._linger_seconds
        # What waits in the stream comes at once, so that a full batch does not linger.
        while held and not self._is_full(held):
            lingers = BUSY_LINGERS if is_busy and not any(one.is_last for one in held) else 1
            remaining = first_at + self._linger_seconds * lingers - time.monotonic()
            if remaining <= 0:
                break
            held += await self._pull(remaining)
        return held

    def _is_full(self, held: Sequence[InFlightMessage]) -> bool:
        outcomes = sum(len(one.batch.outcomes) for one in held)
        return outcomes >= self._max_outcomes or sum(len(one.message.data) for one in held) >= MAX_BYTES

    async def _pull(self, timeout_seconds: float) -> list[InFlightMessage]:
        held = []
        for message in await self._puller.fetch(MESSAGES_PER_PULL, timeout_seconds):
            try:
                sent = read_message(OUTCOMES.kind, message.data, OUTCOMES.max_bytes)
                if dropped := drop_unproved(sent, self._dispatch_proof_key):
                    log.warning(
                        "outcomes without a dispatch proof dropped", run_id=sent.run_id, dropped=dropped
                    )
                batch = batch_from_proto(sent)
            except DecodeError as error:
                log.error("outcome message not readable", subject=message.subject, error=repr(error))
                # No replica can read it; a redelivery would come back for ever.
                await _quietly(message.term())
                continue
            if batch.outcomes:
                held.append(InFlightMessage(message, batch, sent.is_last))
            else:
                await _quietly(message.term())
        return held

    async def _record_and_ack(self, held: Sequence[InFlightMessage]) -> None:
        """While Postgres is away the messages stay in flight."""
        pause = FIRST_BACKOFF_SECONDS
        while True:
            try:
                with _recording_span(held), metrics.RECORDING_SECONDS.time():
                    recorded = await self._record([one.batch for one in held])
            except DependencyUnavailable as error:
                if self._is_stopping:
                    # Redelivered, to another replica or after the next start.
                    return None
                log.warning("outcomes wait", messages=len(held), reason=error.message)
                await asyncio.sleep(pause)
                pause = min(pause * 2, MAX_BACKOFF_SECONDS)
            except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
                return await self._record_one_by_one(held, error)
            else:
                log.debug("outcomes recorded", received=recorded.received, written=recorded.written)
                if recorded.unknown:
                    log.warning("outcomes of no known sample dropped", dropped=recorded.unknown)
                _count(recorded, held)
                for one in held:
                    await _quietly(one.message.ack())
                return None

    async def _record_one_by_one(self, held: Sequence[InFlightMessage], error: Exception) -> None:
        """A message that cannot be recorded does not block the others."""
        if len(held) > 1:
            # After the commit: an ack before it would lose the outcomes of a crash.
            for one in held:
                await self._record_and_ack([one])
            return
        [one] = held
        log.error("outcomes not recorded", run_id=one.batch.run_id, exc_info=error)
        if isinstance(error, UNRECORDABLE):
            await self._record_separately(one)
        else:
            await self._give_back(one)

    async def _record_separately(self, one: InFlightMessage) -> None:
        """An answer that cannot be recorded does not spoil the others of its message."""
        try:
            for batch in one_by_one(one.batch):
                await self._record_or_fail(batch)
        except Exception as error:  # as above
            log.error("outcomes not recorded as failures", run_id=one.batch.run_id, exc_info=error)
            await self._give_back(one)
        else:
            await _quietly(one.message.ack())

    async def _give_back(self, one: InFlightMessage) -> None:
        """Its answers are paid for and need not be at fault: it comes again until the cause is mended."""
        metrics.UNRECORDED_MESSAGES.inc()
        await _quietly(one.message.nak(MAX_BACKOFF_SECONDS))

    async def _record_or_fail(self, batch: OutcomeBatch) -> None:
        """An answer that cannot be recorded becomes a failure, so that the run can end."""
        try:
            await self._record([batch])
        except UNRECORDABLE:
            await self._record([as_unrecordable(batch)])

    @asynccontextmanager
    async def _deadlines_extended(self, held: Sequence[InFlightMessage]) -> AsyncIterator[None]:
        """Extends the ack deadlines of the messages, so that they are not redelivered meanwhile."""
        extending = asyncio.create_task(self._extend_deadlines(held), name="extend ack deadlines")
        try:
            yield
        finally:
            extending.cancel()

    async def _extend_deadlines(self, held: Sequence[InFlightMessage]) -> None:
        while True:
            await asyncio.sleep(self._puller.ack_wait_seconds / 3)
            for one in held:
                await _quietly(one.message.in_progress())


def _recording_span(held: Sequence[InFlightMessage]) -> AbstractContextManager[object]:
    """A span in the trace of the first message that has one; the others are linked."""
    traces = [trace for one in held if (trace := (one.message.headers or {}).get(TRACEPARENT, ""))]
    facts = {"proctor.messages": len(held)}
    parent = traces[0] if traces else ""
    return span("record outcomes", SpanKind.CONSUMER, parent=parent, attributes=facts, links=traces[1:])


def _count(recorded: Recorded, held: Sequence[InFlightMessage]) -> None:
    repeated = recorded.received - recorded.written - recorded.unknown
    counts = {"recorded": recorded.written, "repeated": repeated, "unknown": recorded.unknown}
    for result, count in counts.items():
        metrics.OUTCOMES.labels(result).inc(count)
    deliveries = [one.message.metadata for one in held]
    metrics.OUTCOME_REDELIVERIES.inc(sum(each.num_delivered > 1 for each in deliveries))
    published = min(each.timestamp for each in deliveries).timestamp()
    # The clocks of two machines: a small difference may make it negative.
    metrics.RECORDING_LAG_SECONDS.observe(max(time.time() - published, 0.0))


async def _quietly(acking: Awaitable[object]) -> None:
    """A lost ack only causes a redelivery, and recording outcomes again changes nothing."""
    try:
        await acking
    except ACK_FAILURES as error:
        log.debug("ack lost", error=repr(error))


class NatsProgressPublisher:
    def __init__(self, connection: Client, dispatch_proof_key: str) -> None:
        self._connection = connection
        self._dispatch_proof_key = dispatch_proof_key

    async def publish(self, progress: RecordedProgress) -> None:
        payload = progress_to_proto(progress).SerializeToString()
        headers = {PROGRESS_PROOF: progress_proof(payload, self._dispatch_proof_key)}
        try:
            await self._connection.publish(progress_subject(progress.run_id), payload, headers=headers)
        except TRANSIENT_NATS as error:
            log.info("progress not published", run_id=progress.run_id, error=repr(error))
