"""A run and its figures in the form that clients of the benchmark API know."""

from datetime import datetime

from proctor.v1 import run_pb2, summary_pb2
from services.gateway.http_responses import (
    Figure,
    JobListed,
    JobProgress,
    JobResults,
    JobSummary,
    JobWait,
)
from services.gateway.proto_words import moment, scoring_word, state_word

# How a failed run says why, by reason. Other sentences stand as the scheduler wrote them.
_ERROR_FORMS = {
    "DEADLINE_REACHED": "Job execution failed: {message}",
    "TOO_MANY_FAILURES": "AI provider error: {message}",
    "MODEL_CANNOT_LOAD": "AI provider error: {message}",
}


def job_results(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> JobResults:
    """`summary` is empty while nothing was planned."""
    return JobResults(
        job_id=run.run_id,
        status=state_word(run.state),
        progress=_progress(run.progress),
        summary=_summary(run, summary, now),
        performance_data={run.order.suite: {task.task: _figures(task) for task in summary.tasks}},
        failures=dict(summary.failures),
        unparsed=summary.unparsed,
        completed_at=moment(run.finished_at),
        error=_error(run.error) if run.state == run_pb2.RUN_STATE_FAILED else "",
        wait=_wait(run),
    )


def job_listed(run: run_pb2.Run) -> JobListed:
    return JobListed(
        job_id=run.run_id,
        status=state_word(run.state),
        model_name=run.order.model,
        benchmark_suite=run.order.suite,
        created_at=moment(run.created_at),
        completed_at=moment(run.finished_at),
    )


def _progress(progress: run_pb2.RunProgress) -> JobProgress:
    percent = 100 * progress.completed / progress.total if progress.total else 0.0
    return JobProgress(
        completed=progress.completed,
        total=progress.total,
        percent=round(percent, 1),
        current_step=progress.current_step,
    )


def _summary(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> JobSummary:
    evaluated = [task for task in summary.tasks if task.answered]
    started = moment(run.started_at)
    seconds = ((moment(run.finished_at) or now) - started).total_seconds() if started else 0.0
    return JobSummary(
        total_evaluations=len(evaluated),
        total_samples=summary.answered,
        benchmarks_run=[task.task for task in evaluated],
        models_evaluated=1 if evaluated else 0,
        total_time_seconds=round(max(seconds, 0.0), 3),
        scoring={task.task: scoring_word(task.scoring_method) for task in summary.tasks},
        stand_in=[task.task for task in summary.tasks if task.is_stand_in],
    )


def _figures(task: summary_pb2.TaskSummary) -> dict[str, Figure]:
    return {figure.metric: _figure(figure) for figure in task.metrics}


def _figure(figure: summary_pb2.MetricFigure) -> Figure:
    has_interval = figure.HasField("ci_low") and figure.HasField("ci_high")
    return Figure(
        mean=figure.mean if figure.HasField("mean") else None,
        std=figure.std if figure.HasField("std") else None,
        stderr=figure.stderr if figure.HasField("stderr") else None,
        ci95=(figure.ci_low, figure.ci_high) if has_interval else None,
        n=figure.n,
    )


def _error(error: run_pb2.RunError) -> str:
    return _ERROR_FORMS.get(error.reason, "{message}").format(message=error.message)


def _wait(run: run_pb2.Run) -> JobWait | None:
    if not run.HasField("wait"):
        return None
    seconds = run.wait.estimated_seconds if run.wait.HasField("estimated_seconds") else None
    return JobWait(position=run.wait.position, held_by=run.wait.held_by, estimated_seconds=seconds)
