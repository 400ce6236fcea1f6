"""The run that a path or a query names by its "bm_…".
Runs over data sets on their way out, between the contracts and HTTP.
"""

import json
from datetime import UTC, datetime

from google.protobuf.message import Message

from proctor.v1 import run_pb2, sample_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.dataset_runs.schemas import (
    DatasetRunListed,
    DatasetRunShown,
    DatasetRunStarted,
    MetricShown,
)
from services.gateway.api.runs.job import error_sentence, job_wait, ran_seconds, task_figures, usage_body
from services.gateway.api.runs.routes import duration_text
from services.gateway.api.runs.schemas import timing_body
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.gateway_errors import DatasetRunNotFound
from services.gateway.errors.run_ids import benchmark_id
from services.gateway.http.presentation import moment, priority_word, state_word


async def found_dataset_run(scheduler: SchedulerBackend, run_id: str) -> run_pb2.Run:
    """One over a data set: that of a suite is none here, whatever it is called."""
    try:
        run = await scheduler.get_run(run_id)
    except RemoteError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id)) from error
        raise
    if not run.order.dataset_id:
        raise DatasetRunNotFound(benchmark_id=benchmark_id(run_id))
    return run


_ENDED = (run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED)


def dataset_run_started(response: scheduler_pb2.SubmitRunResponse) -> DatasetRunStarted:
    run, seconds = response.run, _number(response, "estimated_seconds")
    return DatasetRunStarted(
        benchmark_id=benchmark_id(run.run_id),
        status=state_word(run.state),
        started_at=run.created_at.ToDatetime(UTC),
        model_id=run.order.model,
        dataset_id=run.order.dataset_id,
        dataset_name=run.dataset_name,
        deadline=moment(run.deadline),
        estimated_duration=duration_text(seconds),
        estimated_seconds=seconds,
        estimated_cost=_number(response, "estimated_cost"),
        currency=run.price.currency or None,
    )


def dataset_run_listed(run: run_pb2.Run, now: datetime) -> DatasetRunListed:
    progress, has_ended = run.progress, run.state in _ENDED
    return DatasetRunListed(
        benchmark_id=benchmark_id(run.run_id),
        model_id=run.order.model,
        model_name=model_name(run.order.model),
        dataset_id=run.order.dataset_id,
        dataset_name=run.dataset_name,
        status=state_word(run.state),
        progress=100 * progress.completed // progress.total if progress.total else 0,
        completed=progress.completed,
        total=progress.total,
        throughput=throughput(run, now),
        eta_seconds=None if has_ended else _number(progress, "eta_seconds"),
        eta_low_seconds=None if has_ended else _number(progress, "eta_low_seconds"),
        eta_high_seconds=None if has_ended else _number(progress, "eta_high_seconds"),
        started_at=run.created_at.ToDatetime(UTC),
        completed_at=moment(run.finished_at),
        deadline=None if has_ended else moment(run.deadline),
        current_step=progress.current_step,
        failed=sum(progress.failures.values()),
        metrics=[_metric_shown(metric) for metric in run.order.metrics],
        project_id=run.order.project_id,
        user=run.user,
        priority=priority_word(run.order.priority),
        error=error_sentence(run.error) if run.state == run_pb2.RUN_STATE_FAILED else None,
        wait=job_wait(run),
    )


def dataset_run_shown(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> DatasetRunShown:
    """`summary` is empty while nothing was planned."""
    figures = [task_figures(task) for task in summary.tasks]
    return DatasetRunShown(
        **dict(dataset_run_listed(run, now)),
        total_time_seconds=round(ran_seconds(run, now), 3),
        samples_per_second=_number(run.progress, "samples_per_second"),
        # A run over a data set has one task.
        scores=figures[0] if figures else {},
        answered=summary.answered,
        unparsed=summary.unparsed,
        failures=dict(summary.failures),
        usage=usage_body(summary.usage),
        cost=_number(summary, "cost"),
        currency=summary.price.currency or None,
        timing=timing_body(summary.timing),
        reused_answers=run.reused_answers,
    )


def throughput(run: run_pb2.Run, now: datetime) -> float:
    """Generated tokens per second: over the last seconds where that is measured, else over its whole time."""
    if run.state == run_pb2.RUN_STATE_RUNNING and run.progress.HasField("tokens_per_second"):
        return round(run.progress.tokens_per_second, 3)
    seconds = ran_seconds(run, now)
    return round(run.progress.usage.completion_tokens / seconds, 3) if seconds else 0.0


def model_name(model: str) -> str:
    return model.partition("/")[2] or model


def _metric_shown(metric: sample_pb2.MetricUse) -> MetricShown:
    return MetricShown(
        name=metric.name, options=json.loads(metric.options_json) if metric.options_json else None
    )


def _number(message: Message, field: str) -> float | None:
    return getattr(message, field) if message.HasField(field) else None
