"""Announces states of runs: to workers in the bucket RUNS, to watchers and the leader by a notice."""

from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values.messaging import state_subject
from proctor.values.run import RunState
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


class NatsRunControls:
    """A lost announcement is not an error: the row in Postgres counts, and the leader repeats it."""

    def __init__(self, connection: Client, bucket: Bucket, budget: RequestRetryBudget, clock: Clock) -> None:
        self._clock = clock
        self._connection = connection
        self._bucket = bucket
        self._budget = budget

    async def announce(self, run: Run) -> None:
        # The bucket first: a worker that acts on the notice has to find the new state there.
        await self.refresh(run)
        try:
            await self._connection.publish(state_subject(run.run_id), b"")
        except TRANSIENT_NATS as error:
            log.info("notice not sent", run_id=run.run_id, error=repr(error))

    async def refresh(self, run: Run) -> None:
        # A run that stopped early is over for workers, although its figures are still to come.
        state = RunState.COMPLETED if run.needs_no_worker else run.state
        control = work_messages_pb2.RunControl(
            state=number_of(state),
            epoch=run.epoch,
            is_request_retry_budget_spent=self._budget.is_spent(run.pool, run.run_id, run.epoch, run.total),
            time_left=time_left_to_proto(run.deadline, self._clock.now()),
        )
        try:
            ttl_seconds = FINAL_SECONDS if state.is_final else None
            await self._bucket.put(run.run_id, control.SerializeToString(), ttl_seconds=ttl_seconds)
        except TRANSIENT_NATS as error:
            log.info("run control not put", run_id=run.run_id, error=repr(error))
