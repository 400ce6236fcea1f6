"""Runs on the wire."""

from dataclasses import asdict, replace
from datetime import datetime

from google.protobuf import timestamp_pb2

from proctor.v1 import outcome_pb2, run_pb2
from services.scheduler.proto_words import RUN_STATES, SCORING_METHODS
from services.scheduler.runs.model_price import ModelPrice
from services.scheduler.runs.proto_orders import order_to_proto
from services.scheduler.runs.run import Run
from services.scheduler.runs.run_order import GenerationParams
from services.scheduler.runs.run_snapshot import RunProgress, RunSnapshot, RunWait, TaskProgress
from services.scheduler.suites.suite import MetricUse


def snapshot_to_proto(snapshot: RunSnapshot) -> run_pb2.Run:
    message = run_to_proto(snapshot.run)
    message.progress.CopyFrom(_progress_to_proto(snapshot.progress))
    if snapshot.wait is not None:
        message.wait.CopyFrom(_wait_to_proto(snapshot.wait))
    return message


def brief_to_proto(snapshot: RunSnapshot) -> run_pb2.Run:
    """One of many: without what may be long, so that a page of any runs fits into a message."""
    metrics = tuple(MetricUse(use.name) for use in snapshot.run.order.metrics)
    order = replace(snapshot.run.order, tasks=(), params=GenerationParams(), metrics=metrics, line_models=())
    run = replace(snapshot.run, order=order, environment={})
    return snapshot_to_proto(replace(snapshot, run=run))


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


def _progress_to_proto(progress: RunProgress) -> run_pb2.RunProgress:
    speed, left = progress.speed, progress.left
    return run_pb2.RunProgress(
        total=progress.total,
        completed=progress.completed,
        current_step=progress.current_step,
        tasks=[_task_to_proto(task) for task in progress.tasks],
        samples_per_second=speed.samples if speed else None,
        tokens_per_second=speed.tokens if speed else None,
        eta_seconds=left.seconds if left else None,
        eta_low_seconds=left.low if left else None,
        eta_high_seconds=left.high if left else None,
        failures=progress.failures,
        usage=outcome_pb2.TokenUsage(**asdict(progress.usage)),
        cost=progress.cost,
    )


def _task_to_proto(task: TaskProgress) -> run_pb2.TaskProgress:
    return run_pb2.TaskProgress(
        task=task.task,
        total=task.total,
        completed=task.counts.recorded,
        failed=task.counts.failed,
        unparsed=task.counts.unparsed,
        is_stand_in=task.is_stand_in,
    )


def _wait_to_proto(wait: RunWait) -> run_pb2.RunWait:
    message = run_pb2.RunWait(position=wait.position, blocked_by=wait.blocked_by)
    if wait.estimate is not None:
        message.estimated_seconds = wait.estimate.seconds
        message.estimated_low_seconds = wait.estimate.low
        message.estimated_high_seconds = wait.estimate.high
    return message
