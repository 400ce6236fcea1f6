"""Runs as messages, and tokens of their pages."""

from dataclasses import replace
from uuid import UUID

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.run_labels import RunLabels
from proctor.values.scoring import MetricUse
from proctor.wire.convert import Codec
from services.common.errors import InvalidPageToken
from services.common.requests.page_tokens import list_token, read_list_token
from services.scheduler.audit.proto import change_to_proto
from services.scheduler.runs.admission.run_queue import RunWait
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.run_labels import LabelChange
from services.scheduler.runs.orders.proto import ORDER
from services.scheduler.runs.reads.run_list import RunCursor
from services.scheduler.runs.reads.run_snapshot import RunProgress, RunSnapshot

# What only the scheduler itself needs, and what is written apart.
_UNPAIRED = {
    "phase",
    "is_closing",
    "planned_epoch",
    "is_closed",
    "total",
    "final_counts",
    "expires_at",
    "deadline",
}
_RUN = Codec(Run, run_pb2.Run, nested=(ORDER,), unpaired={*_UNPAIRED, "progress", "wait", "changes"})
LABELS = Codec(RunLabels, run_pb2.RunLabels)
_PROGRESS = Codec(RunProgress, run_pb2.RunProgress)
# The name of the list in its page tokens.
_RUNS = "runs"


def run_to_proto(run: Run) -> run_pb2.Run:
    message = _RUN.to_proto(run)
    deadline = run.expires_at or run.deadline
    if deadline is not None:
        message.deadline.FromDatetime(deadline)
    return message


def snapshot_to_proto(snapshot: RunSnapshot) -> run_pb2.Run:
    message = run_to_proto(snapshot.run)
    message.progress.SetInParent()
    _PROGRESS.fill(message.progress, snapshot.progress)
    if snapshot.wait is not None:
        message.wait.CopyFrom(_wait_to_proto(snapshot.wait))
    message.changes.extend(change_to_proto(change) for change in snapshot.changes)
    return message


def brief_to_proto(snapshot: RunSnapshot) -> run_pb2.Run:
    """One of many: without what may be long, so that a page of any runs fits into a message."""
    metrics = tuple(MetricUse(use.name) for use in snapshot.run.order.metrics)
    params = replace(snapshot.run.order.params, provider_params={})
    judge = snapshot.run.order.judge and replace(snapshot.run.order.judge, document="")
    judges = tuple(replace(named, document="") for named in snapshot.run.order.judges)
    order = replace(
        snapshot.run.order,
        tasks=(),
        params=params,
        metrics=metrics,
        line_models=(),
        judge=judge,
        judges=judges,
    )
    if not order.is_of_rollouts:
        # A log may have 100,000 rows; an order of rollouts has few tasks, and lists count its rollouts.
        order = replace(order, row_rollouts=())
    run = replace(snapshot.run, order=order, environment={})
    return snapshot_to_proto(replace(snapshot, run=run))


def label_change(request: scheduler_pb2.LabelRunRequest) -> LabelChange:
    return LabelChange(
        name=request.name if request.HasField("name") else None,
        note=request.note if request.HasField("note") else None,
        tags=tuple(request.tags.tags) if request.HasField("tags") else None,
        added_tags=tuple(request.added_tags),
        removed_tags=tuple(request.removed_tags),
    )


def _wait_to_proto(wait: RunWait) -> run_pb2.RunWait:
    message = run_pb2.RunWait(position=wait.position, blocked_by=wait.blocked_by)
    if wait.estimate is not None:
        message.estimated_seconds = wait.estimate.seconds
        message.estimated_low_seconds = wait.estimate.low
        message.estimated_high_seconds = wait.estimate.high
    return message


def token_behind(run: Run, total: int) -> str:
    return list_token(_RUNS, run.created_at, run.run_id, total)


def cursor_from_token(token: str) -> RunCursor | None:
    """None for the first page."""
    if not token:
        return None
    created_at, run_id, total = read_list_token(_RUNS, token)
    try:
        return RunCursor(created_at, str(UUID(run_id)), total)
    except ValueError as error:
        raise InvalidPageToken(page_token=token) from error
