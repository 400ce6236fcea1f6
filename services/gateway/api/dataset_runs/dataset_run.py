"""A run over a data set, for its API."""

from datetime import UTC, datetime

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import RunState
from proctor.wire.convert import member_of
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.dataset_runs.schemas import (
    DatasetRunListed,
    DatasetRunShown,
    DatasetRunStarted,
)
from services.gateway.api.runs.job import error_sentence, job_wait, ran_seconds, task_figures, timing_body
from services.gateway.api.runs.routes import duration_text
from services.gateway.backends.backends import Scheduler
from services.gateway.errors.gateway_errors import DatasetRunNotFound
from services.gateway.errors.run_ids import benchmark_id
from services.gateway.http.presentation import json_value, moment, optional, present, word


async def get_dataset_run(scheduler: Scheduler, run_id: str) -> run_pb2.Run:
    """Raises `DatasetRunNotFound`, also for a run over a suite."""
    try:
        run = await scheduler.run(run_id)
    except RemoteError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id)) from error
        raise
    if not run.order.dataset_id:
        raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id))
    return run


def dataset_run_started(response: scheduler_pb2.SubmitRunResponse) -> DatasetRunStarted:
    run, seconds = response.run, optional(response, "estimated_seconds")
    return present(
        DatasetRunStarted,
        response,
        **identity_of(run),
        started_at=run.created_at.ToDatetime(UTC),
        deadline=moment(run.deadline),
        estimated_duration=duration_text(seconds),
        currency=run.price.currency or None,
    )


def dataset_run_listed(run: run_pb2.Run, now: datetime) -> DatasetRunListed:
    return DatasetRunListed.model_validate(_listed(run, now))


def dataset_run_shown(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> DatasetRunShown:
    """`summary` is empty before the run is planned."""
    figures = [task_figures(task) for task in summary.tasks]
    return present(
        DatasetRunShown,
        summary,
        **_listed(run, now),
        total_time_seconds=round(ran_seconds(run, now), 3),
        samples_per_second=optional(run.progress, "samples_per_second"),
        # A run over a data set has one task.
        scores=figures[0] if figures else {},
        currency=summary.price.currency or None,
        timing=timing_body(summary.timing),
        reused_answers=run.reused_answers,
    )


def identity_of(run: run_pb2.Run) -> dict[str, object]:
    """Fields that every body about the run begins with."""
    return {
        "benchmark_id": benchmark_id(run.run_id),
        "model_id": run.order.model,
        "model_name": run.order.model.partition("/")[2] or run.order.model,
        "dataset_id": run.order.dataset_id,
        "dataset_name": run.dataset_name,
        "status": word(run_pb2.RunState, run.state),
    }


def throughput(run: run_pb2.Run, now: datetime) -> float:
    """Generated tokens per second: the current rate if it is measured, else over the whole time."""
    if run.state == run_pb2.RUN_STATE_RUNNING and run.progress.HasField("tokens_per_second"):
        return round(run.progress.tokens_per_second, 3)
    seconds = ran_seconds(run, now)
    return round(run.progress.usage.completion_tokens / seconds, 3) if seconds else 0.0


def _listed(run: run_pb2.Run, now: datetime) -> dict[str, object]:
    progress, state = run.progress, member_of(RunState, run.state)
    has_ended = state is not None and state.is_final
    return {
        **identity_of(run),
        "progress": 100 * progress.completed // progress.total if progress.total else 0,
        "completed": progress.completed,
        "total": progress.total,
        "throughput": throughput(run, now),
        "eta_seconds": None if has_ended else optional(progress, "eta_seconds"),
        "eta_low_seconds": None if has_ended else optional(progress, "eta_low_seconds"),
        "eta_high_seconds": None if has_ended else optional(progress, "eta_high_seconds"),
        "started_at": run.created_at.ToDatetime(UTC),
        "completed_at": moment(run.finished_at),
        "deadline": None if has_ended else moment(run.deadline),
        "current_step": progress.current_step,
        "failed": sum(progress.failures.values()),
        "metrics": [
            {"name": each.name, "options": json_value(each.options_json)} for each in run.order.metrics
        ],
        "project_id": run.order.project_id,
        "user": run.user,
        "priority": word(run_pb2.Priority, run.order.priority),
        "error": error_sentence(run),
        "wait": job_wait(run),
    }
