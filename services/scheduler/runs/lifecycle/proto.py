"""Runs as messages."""

from proctor.v1 import run_pb2
from proctor.wire.convert import number_of
from proctor.wire.values import PRICE
from proctor.wire.well_known import time_to_proto
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.proto import order_to_proto


def run_to_proto(run: Run) -> run_pb2.Run:
    error = run.error
    return run_pb2.Run(
        run_id=run.run_id,
        order=order_to_proto(run.order),
        user=run.user,
        state=number_of(run.state),
        epoch=run.epoch,
        pool=run.pool,
        created_at=time_to_proto(run.created_at),
        started_at=time_to_proto(run.started_at),
        finished_at=time_to_proto(run.finished_at),
        deadline=time_to_proto(run.expires_at or run.deadline),
        error=run_pb2.RunError(reason=error.reason, message=error.message) if error else None,
        environment=run.environment,
        scoring_method=number_of(run.scoring_method),
        suite_version=run.suite_version,
        price=PRICE.to_proto(run.price) if run.price else None,
        reused_answers=run.reused_answers,
        admitted_at=time_to_proto(run.admitted_at),
        ran_seconds=run.ran_seconds,
        dataset_name=run.dataset_name,
    )
