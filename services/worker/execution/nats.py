"""Publishes outcomes to the stream OUTCOMES and follows the states of runs in the bucket RUNS."""

from collections.abc import Callable, Mapping
from datetime import UTC

from google.protobuf.message import DecodeError

from proctor.v1 import run_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.run import RunId
from services.common import streams
from services.common.jetstream import BucketEntry, JetStream
from services.common.structured_logs import get_logger
from services.worker.execution.choice_prompt import INSTRUCTION_VERSION
from services.worker.execution.proto import batch_to_bytes
from services.worker.execution.run_states import RunControl, RunStates
from services.worker.execution.shard import OutcomeBatch

_FINAL = frozenset((run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED))
_WITHOUT_SLOT = frozenset((run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_PAUSED))

log = get_logger()


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
        await self._jetstream.publish(streams.OUTCOMES, subject, payload, message_id)

    def _environment_of(self, batch: OutcomeBatch) -> Mapping[str, str]:
        environment = dict(self._environment())
        base_url = batch.outcomes[0].shard.base_url
        if base_url:
            # The server that the order names, not the pool's own.
            environment["base_url"] = base_url
        if any(outcome.shard.has_choice_instruction for outcome in batch.outcomes):
            environment["choice_instruction"] = INSTRUCTION_VERSION
        return environment


async def follow_run_states(jetstream: JetStream, states: RunStates, changed: Callable[[], None]) -> None:
    """Runs until cancelled; calls `changed` after each change, so that cancelled runs stop at once."""
    async for entry in jetstream.bucket(streams.RUNS_BUCKET).watch():
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
    states.put(
        run_id,
        RunControl(
            epoch=control.epoch,
            is_final=control.state in _FINAL,
            is_retry_budget_spent=control.is_retry_budget_spent,
            has_slot=control.state not in _WITHOUT_SLOT,
            deadline=control.deadline.ToDatetime(UTC) if control.HasField("deadline") else None,
        ),
    )
