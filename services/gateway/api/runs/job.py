"""Figures as they go out over HTTP: each with the way it was scored, undefined ones as null.
How far a job is and why it waits, in the words of the benchmark API.
A run and its figures in the form that clients of the benchmark API know.
"""

from datetime import datetime

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from services.gateway.api.runs.schemas import (
    Figure,
    GroupFigures,
    JobListed,
    JobProgress,
    JobResults,
    JobSummary,
    JobUsage,
    JobWait,
    TaskCounts,
    timing_body,
)
from services.gateway.http.presentation import board_of, choice_scoring, moment, scoring_word, state_word


def task_figures(task: summary_pb2.TaskSummary) -> dict[str, Figure]:
    """By metric."""
    scoring = choice_scoring(task.scoring_method)
    return {figure.metric: figure_body(figure, scoring) for figure in task.metrics}


def figure_body(figure: summary_pb2.MetricFigure, scoring: str) -> Figure:
    return Figure(
        mean=figure.mean if figure.HasField("mean") else None,
        std=figure.std if figure.HasField("std") else None,
        stderr=figure.stderr if figure.HasField("stderr") else None,
        ci95=interval(figure),
        n=figure.n,
        scoring=scoring,
        within_std=figure.within_std if figure.HasField("within_std") else None,
    )


def interval(figure: summary_pb2.MetricFigure) -> tuple[float, float] | None:
    has_interval = figure.HasField("ci_low") and figure.HasField("ci_high")
    return (figure.ci_low, figure.ci_high) if has_interval else None


def group_scoring(group: summary_pb2.GroupSummary, metric: str, summary: summary_pb2.RunSummary) -> str:
    """The ways the tasks behind the figure were scored; all tasks are behind one that no task has."""
    members = [task for task in summary.tasks if task.task in group.tasks]
    having = [task for task in members if any(figure.metric == metric for figure in task.metrics)]
    words = dict.fromkeys(choice_scoring(task.scoring_method) for task in having or members)
    return ", ".join(word for word in words if word)


def rate(count: int, of: int) -> float | None:
    return count / of if of else None


def job_progress(progress: run_pb2.RunProgress) -> JobProgress:
    percent = 100 * progress.completed / progress.total if progress.total else 0.0
    return JobProgress(
        completed=progress.completed,
        total=progress.total,
        percent=round(percent, 1),
        current_step=progress.current_step,
    )


def job_wait(run: run_pb2.Run) -> JobWait | None:
    """None where it does not wait."""
    if not run.HasField("wait"):
        return None
    wait = run.wait
    is_told = wait.HasField("estimated_seconds")
    return JobWait(
        position=wait.position,
        blocked_by=wait.blocked_by,
        estimated_seconds=wait.estimated_seconds if is_told else None,
        estimated_low_seconds=wait.estimated_low_seconds if is_told else None,
        estimated_high_seconds=wait.estimated_high_seconds if is_told else None,
    )


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
