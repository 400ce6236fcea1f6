"""Publishes outcomes to the stream OUTCOMES and follows the states of runs in the bucket RUNS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC

from google.protobuf.message import DecodeError

from proctor.v1 import run_pb2, work_messages_pb2
from services.common import subjects
from services.common.jetstream import BucketEntry, JetStream
from services.common.structured_logs import get_logger
from services.worker.execution.choice_prompt import INSTRUCTION_VERSION
from services.worker.execution.proto import batch_to_bytes
from services.worker.execution.run_states import RunControl, RunStates
from services.worker.execution.shard import OutcomeBatch, RunId


class NatsOutcomePublisher:
    def __init__(
        self, jetstream: JetStream, worker_id: str, environment: Callable[[], Mapping[str, str]]
    ) -> None:
        self._jetstream = jetstream
        self._worker_id = worker_id
        self._environment = environment

    async def publish(self, batch: OutcomeBatch, message_id: str) -> None:
        payload = batch_to_bytes(batch, self._worker_id, self._environment_of(batch))
        subject = subjects.outcome_subject(batch.run_id)
        await self._jetstream.publish(subjects.OUTCOMES, subject, payload, message_id)

    def _environment_of(self, batch: OutcomeBatch) -> Mapping[str, str]:
        environment = self._environment()
        base_url = batch.outcomes[0].shard.base_url
        if base_url:
            # The server that the order names, and not the pool's own.
            environment = {**environment, "base_url": base_url}
        if not any(outcome.shard.instructs for outcome in batch.outcomes):
            return environment
        return {**environment, "choice_instruction": INSTRUCTION_VERSION}


_FINAL = frozenset((run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED))
_WITHOUT_PLACE = frozenset((run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_PAUSED))

log = get_logger()


async def follow_run_states(jetstream: JetStream, states: RunStates, changed: Callable[[], None]) -> None:
    """Goes on for ever; `changed` is called after each word that came."""
    async for entry in jetstream.bucket(subjects.RUNS_BUCKET).watch():
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
    known = RunControl(
        epoch=control.epoch,
        is_final=control.state in _FINAL,
        is_retry_budget_spent=control.is_retry_budget_spent,
        has_place=control.state not in _WITHOUT_PLACE,
        deadline=control.deadline.ToDatetime(UTC) if control.HasField("deadline") else None,
    )
    states.put(run_id, known)
