"""Runs as messages."""

from dataclasses import asdict
from datetime import datetime

from google.protobuf import timestamp_pb2

from proctor.v1 import run_pb2
from services.scheduler.proto_words import RUN_STATES, SCORING_METHODS
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.model_price import ModelPrice
from services.scheduler.runs.orders.proto import order_to_proto


def run_to_proto(run: Run) -> run_pb2.Run:
    error = run.error
    return run_pb2.Run(
        run_id=run.run_id,
        order=order_to_proto(run.order),
        user=run.user,
        state=RUN_STATES[run.state],
        epoch=run.epoch,
        pool=run.pool,
        created_at=time_to_proto(run.created_at),
        started_at=time_to_proto(run.started_at),
        finished_at=time_to_proto(run.finished_at),
        deadline=time_to_proto(run.expires_at or run.deadline),
        error=run_pb2.RunError(reason=error.reason, message=error.message) if error else None,
        environment=run.environment,
        scoring_method=SCORING_METHODS[run.scoring_method],
        suite_version=run.suite_version,
        price=price_to_proto(run.price),
        reused_answers=run.reused_answers,
        # Runs that ended before there were stays had one, from start to end.
        admitted_at=time_to_proto(run.admitted_at or (None if run.ran_seconds else run.started_at)),
        ran_seconds=run.ran_seconds,
        dataset_name=run.dataset_name,
    )


def price_to_proto(price: ModelPrice | None) -> run_pb2.ModelPrice | None:
    return run_pb2.ModelPrice(**asdict(price)) if price else None


def time_to_proto(time: datetime | None) -> timestamp_pb2.Timestamp | None:
    if time is None:
        return None
    message = timestamp_pb2.Timestamp()
    message.FromDatetime(time)
    return message
