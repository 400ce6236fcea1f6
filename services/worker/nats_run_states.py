"""Follows the bucket RUNS, so that the worker hears of a cancelled or paused run at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from google.protobuf.message import DecodeError

from proctor.v1 import run_pb2, work_messages_pb2
from services.common import subjects
from services.common.jetstream import BucketEntry, JetStream
from services.common.structured_logs import get_logger
from services.worker.run_states import RunControl, RunStates
from services.worker.shard import RunId

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
