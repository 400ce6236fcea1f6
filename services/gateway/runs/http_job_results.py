"""A run and its figures in the form that clients of the benchmark API know."""

from datetime import datetime

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from services.gateway.proto_words import board_of, moment, scoring_word, state_word
from services.gateway.runs.http_figures import figure_body, group_scoring, rate, task_figures
from services.gateway.runs.http_job_bodies import (
    GroupFigures,
    JobListed,
    JobResults,
    JobSummary,
    JobUsage,
    TaskCounts,
)
from services.gateway.runs.http_job_progress import job_progress, job_wait
from services.gateway.runs.http_timing import timing_body

# How a failed run says why, by reason. Other sentences stand as the scheduler wrote them.
_ERROR_FORMS = {
    "DEADLINE_REACHED": "Job execution failed: {message}",
    "COST_LIMIT_REACHED": "Job execution failed: {message}",
    "TOO_MANY_FAILURES": "AI provider error: {message}",
    "MODEL_CANNOT_LOAD": "AI provider error: {message}",
}


def job_results(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> JobResults:
    """`summary` is empty while nothing was planned."""
    return JobResults(
        job_id=run.run_id,
        status=state_word(run.state),
        progress=job_progress(run.progress),
        summary=_summary(run, summary, now),
        performance_data={board_of(run.order): {task.task: task_figures(task) for task in summary.tasks}},
        groups=_groups(summary),
        tasks={task.task: counts_body(task) for task in summary.tasks},
        failures=dict(summary.failures),
        unparsed=summary.unparsed,
        unparsed_rate=rate(summary.unparsed, summary.answered),
        failed_rate=rate(summary.failed, summary.answered + summary.failed),
        timing=timing_body(summary.timing),
        usage=usage_body(summary.usage),
        cost=summary.cost if summary.HasField("cost") else None,
        currency=summary.price.currency,
        completed_at=moment(run.finished_at),
        error=error_sentence(run.error) if run.state == run_pb2.RUN_STATE_FAILED else "",
        wait=job_wait(run),
    )


def job_listed(run: run_pb2.Run) -> JobListed:
    return JobListed(
        job_id=run.run_id,
        status=state_word(run.state),
        model_name=run.order.model,
        benchmark_suite=board_of(run.order),
        created_at=moment(run.created_at),
        completed_at=moment(run.finished_at),
        wait=job_wait(run),
    )


def _summary(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> JobSummary:
    evaluated = [task for task in summary.tasks if task.answered]
    return JobSummary(
        total_evaluations=len(evaluated),
        total_samples=summary.answered,
        benchmarks_run=[task.task for task in evaluated],
        models_evaluated=1 if evaluated else 0,
        total_time_seconds=round(ran_seconds(run, now), 3),
        scoring={task.task: scoring_word(task.scoring_method) for task in summary.tasks},
        stand_in=[task.task for task in summary.tasks if task.is_stand_in],
        reused_answers=run.reused_answers,
    )


def ran_seconds(run: run_pb2.Run, now: datetime) -> float:
    """Without the time that it waited or was paused."""
    admitted = moment(run.admitted_at)
    stay = ((moment(run.finished_at) or now) - admitted).total_seconds() if admitted else 0.0
    return run.ran_seconds + max(stay, 0.0)


def counts_body(task: summary_pb2.TaskSummary) -> TaskCounts:
    return TaskCounts(
        answered=task.answered,
        failed=task.failed,
        unparsed=task.unparsed,
        unparsed_rate=rate(task.unparsed, task.answered),
        failed_rate=rate(task.failed, task.answered + task.failed),
    )


def usage_body(usage: outcome_pb2.TokenUsage) -> JobUsage:
    return JobUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def _groups(summary: summary_pb2.RunSummary) -> dict[str, GroupFigures]:
    return {
        group.group: GroupFigures(
            tasks=list(group.tasks),
            missing_tasks=list(group.missing_tasks),
            figures={
                each.metric: figure_body(each, group_scoring(group, each.metric, summary))
                for each in group.metrics
            },
        )
        for group in summary.groups
    }


def error_sentence(error: run_pb2.RunError) -> str:
    return _ERROR_FORMS.get(error.reason, "{message}").format(message=error.message)
