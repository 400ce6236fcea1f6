"""Runs with their progress as messages, and page tokens of lists of runs."""

from dataclasses import replace
from uuid import UUID

from proctor.v1 import run_pb2
from proctor.values.generation import GenerationParams
from proctor.values.scoring import MetricUse
from proctor.wire.convert import number_of
from proctor.wire.values import PRICE, USAGE
from proctor.wire.well_known import time_to_proto
from services.scheduler.errors import InvalidPageToken
from services.scheduler.requests import list_token, read_list_token
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.proto import order_to_proto
from services.scheduler.runs.reads.run_list import RunCursor
from services.scheduler.runs.reads.run_snapshot import RunProgress, RunSnapshot, TaskProgress


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
        usage=USAGE.to_proto(progress.usage),
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


def token_behind(run: Run, total: int) -> str:
    return list_token(run.created_at, run.run_id, total)


def cursor_from_token(token: str) -> RunCursor | None:
    """None for the first page."""
    if not token:
        return None
    created_at, run_id, total = read_list_token(token)
    try:
        return RunCursor(created_at, str(UUID(run_id)), total)
    except ValueError as error:
        raise InvalidPageToken(page_token=token) from error
