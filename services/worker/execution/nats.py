"""Publishes batches of outcomes to the stream OUTCOMES; follows the states of runs in the bucket RUNS."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import orjson
from google.protobuf.message import DecodeError

from proctor.v1 import run_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.outcome import Failure, FailureClass, Outcome
from proctor.values.run import FINAL_NUMBERS, RunId
from proctor.values.scoring import INSTRUCTION_VERSION
from proctor.values.usage import USAGE_NAMES, Timing, TokenUsage
from proctor.wire.values import OUTCOME
from services.common.clock import ServerClock
from services.common.nats import streams
from services.common.nats.bucket import Bucket, BucketEntry
from services.common.nats.jetstream import JetStream
from services.common.structured_logs import get_logger
from services.worker import metrics
from services.worker.execution.proto import proof_to_proto
from services.worker.execution.run_states import RunControl, RunStates
from services.worker.execution.shard import OutcomeBatch

# Every answer about a stream says the server's time.
_TIME_SUBJECT = f"$JS.API.STREAM.INFO.KV_{streams.RUNS_BUCKET.name}"
# The clock is compared this often: a machine's clock drifts by less than 50 ms in this time.
_TIME_SECONDS = 300.0
_REQUEST_SECONDS = 5.0

log = get_logger()
_WITHOUT_SLOT = frozenset((run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_PAUSED))
_ANSWERED = "answered"
_TOKENS_BY_KIND = [(name.removesuffix("_tokens"), name) for name in USAGE_NAMES]


def batch_to_bytes(batch: OutcomeBatch, worker_id: str, environment: Mapping[str, str]) -> bytes:
    # One proof for each dispatch, of which several parts may be in the batch.
    proofs = dict.fromkeys([shard.dispatch_proof for shard in batch.shards])
    message = work_messages_pb2.OutcomeBatch(
        run_id=batch.run_id,
        epoch=batch.epoch,
        worker_id=worker_id,
        environment=environment,
        dispatch_proofs=[proof_to_proto(each) for each in proofs if each.hmac],
        is_last=batch.is_last,
    )
    # Filled where they lie: to copy an outcome in takes as long as to fill it.
    outcomes, fill = message.outcomes, OUTCOME.fill_function
    for outcome in batch.outcomes:
        try:
            fill(outcomes.add(), outcome)
        except (TypeError, ValueError) as error:
            # It fits no message; the others of its batch do.
            log.error("outcome fits no message", sample=outcome.sample, error=repr(error))
            outcomes.pop()
            OUTCOME.fill(outcomes.add(), _as_failure(outcome, error))
    return message.SerializeToString()


def _as_failure(outcome: Outcome, error: Exception) -> Outcome:
    reason = f"The answer fits no message ({type(error).__name__})."
    failure = Failure(FailureClass.PROVIDER_ERROR, reason)
    return replace(outcome, result=failure, usage=TokenUsage(), timing=Timing())


class NatsOutcomePublisher:
    def __init__(
        self, jetstream: JetStream, worker_id: str, environment: Callable[[], Mapping[str, str]]
    ) -> None:
        self._jetstream = jetstream
        self._worker_id = worker_id
        self._environment = environment

    async def publish(self, batch: OutcomeBatch, message_id: str) -> None:
        payload = batch_to_bytes(batch, self._worker_id, self._environment_of(batch))
        subject = messaging.outcome_subject(batch.run_id)
        await self._jetstream.publish(subject, payload, message_id)
        # After the publish, so that a batch which is published again after an outage counts once.
        _count(batch.outcomes)

    def _environment_of(self, batch: OutcomeBatch) -> Mapping[str, str]:
        environment = dict(self._environment())
        base_url = batch.shards[0].base_url
        if base_url:
            # The server that the order names, not the pool's own.
            environment["base_url"] = base_url
        if any(shard.has_choice_instruction for shard in batch.shards):
            environment["choice_instruction"] = INSTRUCTION_VERSION
        return environment


class ServerTime:
    """Keeps a clock at the time of NATS: of its messages, and of the deadlines that come with them."""

    def __init__(self, jetstream: JetStream, clock: ServerClock) -> None:
        self._jetstream = jetstream
        self._clock = clock
        self._reconnects = -1

    async def learn_if_due(self) -> None:
        """Asks on each connection, and every few minutes."""
        learned_at, reconnects = self._clock.learned_at, self._jetstream.reconnects
        is_fresh = learned_at is not None and self._clock.monotonic() < learned_at + _TIME_SECONDS
        if is_fresh and reconnects == self._reconnects:
            return
        asked_at = self._clock.monotonic()
        reply = await self._jetstream.connection.request(_TIME_SUBJECT, timeout=_REQUEST_SECONDS)
        shown = orjson.loads(reply.data).get("ts")
        if shown:
            # The server read its clock about half-way between question and answer.
            taken = timedelta(seconds=(self._clock.monotonic() - asked_at) / 2)
            self._clock.learn(datetime.fromisoformat(shown) + taken)
            self._reconnects = reconnects


async def follow_run_states(jetstream: JetStream, states: RunStates, changed: Callable[[], None]) -> None:
    """Runs until cancelled; calls `changed` after each change, so that cancelled runs stop at once."""
    async for entry in Bucket(jetstream, streams.RUNS_BUCKET).watch():
        _apply(entry, states)
        changed()


def _apply(entry: BucketEntry, states: RunStates) -> None:
    run_id = RunId(entry.key)
    if entry.value is None:
        states.forget(run_id)
        return
    try:
        control = work_messages_pb2.RunControl.FromString(entry.value)
    except DecodeError as error:
        log.error("unreadable run state", run_id=run_id, error=str(error))
        return
    if not control.epoch:
        # The scheduler has not written it: what was known before still holds.
        log.error("run state without an epoch", run_id=run_id)
        return
    states.put(
        run_id,
        RunControl(
            epoch=control.epoch,
            is_final=control.state in FINAL_NUMBERS,
            is_request_retry_budget_spent=control.is_request_retry_budget_spent,
            # Named by those without: a state that a newer scheduler adds keeps its slot here.
            has_slot=control.state not in _WITHOUT_SLOT,
            deadline=entry.put_at + control.time_left.ToTimedelta()
            if control.HasField("time_left")
            else None,
        ),
    )


def _count(outcomes: Sequence[Outcome]) -> None:
    answered: list[Outcome] = []
    failed: Counter[str] = Counter()
    for each in outcomes:
        if isinstance(each.result, Failure):
            failed[each.result.failure_class.value] += 1
        else:
            answered.append(each)
    if answered:
        metrics.SAMPLES.labels(_ANSWERED).inc(len(answered))
    for result, count in failed.items():
        metrics.SAMPLES.labels(result).inc(count)
    times = [answer.timing for answer in answered]
    metrics.ANSWER_SECONDS.observe_all([time.total_seconds for time in times])
    metrics.FIRST_TOKEN_SECONDS.observe_all(
        [seconds for time in times if (seconds := time.first_token_seconds) is not None]
    )
    metrics.BETWEEN_TOKENS_SECONDS.observe_all(
        [seconds for time in times if (seconds := time.between_tokens_seconds) is not None]
    )
    for kind, name in _TOKENS_BY_KIND:
        # A provider may report anything, and a counter that falls is an error.
        metrics.TOKENS.labels(kind).inc(max(sum([getattr(each.usage, name) for each in answered]), 0))
