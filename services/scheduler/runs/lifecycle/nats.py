"""Announces states of runs: to workers in the bucket RUNS, to watchers and the leader by a notice."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values.messaging import state_subject
from proctor.values.run import RunId, RunState
from proctor.wire.enums import number_of
from proctor.wire.well_known import time_left_to_proto
from services.common.clock import Clock
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.scheduler.rate_limits.rate_meter import RequestRetryBudget
from services.scheduler.runs.lifecycle.run import Run

# How long workers are told of a finished run. A worker that was away for longer may execute a shard of it,
# whose outcomes results ignores.
FINAL_SECONDS = 600.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class _Put:
    """A control as it was put. The time left in `payload` counts from then: the deadline stands beside it."""

    control: work_messages_pb2.RunControl
    deadline: datetime | None
    payload: bytes


class NatsRunControls:
    """A lost announcement is not an error: the row in Postgres counts, and the leader repeats it."""

    def __init__(self, connection: Client, bucket: Bucket, budget: RequestRetryBudget, clock: Clock) -> None:
        self._clock = clock
        self._connection = connection
        self._bucket = bucket
        self._budget = budget
        # Of running runs.
        self._puts: dict[RunId, _Put] = {}

    async def announce(self, run: Run) -> None:
        # The bucket first: a worker that acts on the notice has to find the new state there.
        await self._quietly(self._put, run)
        try:
            await self._connection.publish(state_subject(run.run_id), b"")
        except TRANSIENT_NATS as error:
            log.info("notice not sent", run_id=run.run_id, error=repr(error))

    async def refresh(self, run: Run) -> None:
        """Reads the key, and puts it where it is not what this process put: each worker gets every put."""
        await self._quietly(self._put_if_lost, run)

    async def _quietly(self, put: Callable[[Run], Awaitable[None]], run: Run) -> None:
        try:
            await put(run)
        except TRANSIENT_NATS as error:
            log.info("run control not put", run_id=run.run_id, error=repr(error))

    async def _put_if_lost(self, run: Run) -> None:
        known = self._puts.get(run.run_id)
        is_known = known and (known.control, known.deadline) == (self._control(run), run.deadline)
        # Another replica may have put an older state since, or the bucket may be a new one.
        if not (known and is_known and await self._bucket.get(run.run_id) == known.payload):
            await self._put(run)

    async def _put(self, run: Run) -> None:
        control = self._control(run)
        timed = work_messages_pb2.RunControl(time_left=time_left_to_proto(run.deadline, self._clock.now()))
        timed.MergeFrom(control)
        put = _Put(control, run.deadline, timed.SerializeToString())
        # Kept only once it is known to be there.
        self._puts.pop(run.run_id, None)
        state = _state_for_workers(run)
        ttl_seconds = FINAL_SECONDS if state.is_final else None
        await self._bucket.put(run.run_id, put.payload, ttl_seconds=ttl_seconds)
        if state is RunState.RUNNING:
            self._puts[run.run_id] = put

    def _control(self, run: Run) -> work_messages_pb2.RunControl:
        """Without the time that is left, which differs each time."""
        is_spent = self._budget.is_spent(run.pool, run.run_id, run.epoch, run.total)
        return work_messages_pb2.RunControl(
            state=number_of(_state_for_workers(run)), epoch=run.epoch, is_request_retry_budget_spent=is_spent
        )


def _state_for_workers(run: Run) -> RunState:
    # A run that stopped early is over for workers, although its figures are still to come.
    return RunState.COMPLETED if run.needs_no_worker else run.state
