"""A run with its summary as a job of the benchmark API."""

from datetime import datetime

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2, summary_pb2
from proctor.values.run import unparsed_warning
from proctor.values.scoring import benchmark_group
from proctor.wire.decisions import decision_sentence
from proctor.wire.enums import word_of
from proctor.wire.rollout_orders import answering_model
from proctor.wire.values import USAGE
from services.gateway.api.changes import changes_of
from services.gateway.api.models import provider_and_name
from services.gateway.api.runs.contamination import contamination_shown
from services.gateway.api.runs.repeat import repeating_body
from services.gateway.api.runs.schemas import (
    DecisionShown,
    FigureShown,
    GroupFigures,
    JobListed,
    JobProgress,
    JobResults,
    JobSummary,
    JobWait,
    PercentilesShown,
    TaskCountsShown,
    TimingShown,
)
from services.gateway.http.presentation import benchmark_of, interval, moment, optional, present
from services.gateway.http.project_names import project_name

# How sentences of failed runs begin, by reason.
_ERROR_PREFIXES = {
    "DEADLINE_REACHED": "Job execution failed: ",
    "COST_LIMIT_REACHED": "Job execution failed: ",
    "TOO_MANY_FAILURES": "AI provider error: ",
    "MODEL_CANNOT_LOAD": "AI provider error: ",
}


def job_results(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> JobResults:
    """`summary` is empty before the run is planned."""
    return present(
        JobResults,
        run.labels,
        job_id=run.run_id,
        status=word_of(run_pb2.RunState, run.state),
        progress=job_progress(run.progress),
        summary=_summary(run, summary, now),
        performance_data={benchmark_of(run.order): {task.task: task_figures(task) for task in summary.tasks}},
        groups=_groups(summary),
        headline=_headline(summary),
        tasks={task.task: present(TaskCountsShown, task, **_rates(task)) for task in summary.tasks},
        failures=dict(summary.failures),
        problems=list(summary.problems),
        contamination=contamination_shown(summary),
        unparsed=summary.unparsed,
        **_rates(summary),
        warnings=_warnings(run, summary),
        timing=timing_shown(summary.timing),
        usage=USAGE.from_proto(summary.usage),
        cost=optional(summary, "cost"),
        currency=summary.price.currency,
        completed_at=moment(run.finished_at),
        error=error_sentence(run) or "",
        imported_from=run.order.imported_from,
        archive_state=archive_state(run),
        stopped_early=decision_shown(run),
        wait=job_wait(run),
        changes=changes_of(run),
        order=repeating_body(run),
    )


def reclosed_predicate(response: results_pb2.RecloseRunResponse) -> str:
    """What closing a run again has come to, for a sentence about the run."""
    if not response.HasField("summary"):
        return "is closed again; its figures are computed"
    if problems := response.summary.problems:
        return f"was closed again, and figures are still missing: {problems[0]}"
    return "has all its figures"


def job_listed(run: run_pb2.Run) -> JobListed:
    return present(
        JobListed,
        run,
        run.labels,
        job_id=run.run_id,
        status=word_of(run_pb2.RunState, run.state),
        **provider_and_name(answering_model(run.order)),
        benchmark_suite=benchmark_of(run.order),
        completed_at=moment(run.finished_at),
        imported_from=run.order.imported_from,
        project_name=project_name(run.order.project_id) or None,
        archive_state=archive_state(run),
    )


def archive_state(run: run_pb2.Run) -> str:
    """A word for where its answers are; "" while they are in Postgres."""
    return word_of(run_pb2.ArchiveState, run.archive_state) if run.archive_state else ""


def job_progress(progress: run_pb2.RunProgress) -> JobProgress:
    percent = 100 * progress.recorded / progress.total if progress.total else 0.0
    return present(
        JobProgress,
        progress,
        completed=progress.recorded,
        percent=round(percent, 1),
        current_step=progress.phase,
    )


def job_wait(run: run_pb2.Run) -> JobWait | None:
    return present(JobWait, run.wait) if run.HasField("wait") else None


def decision_shown(run: run_pb2.Run) -> DecisionShown | None:
    if not run.HasField("decision"):
        return None
    wanted = run.order.until_decided
    return present(
        DecisionShown,
        run.decision,
        against_job_id=wanted.against_run_id,
        is_base=wanted.is_base,
        sentence=decision_sentence(run),
    )


def ran_seconds(run: run_pb2.Run, now: datetime) -> float:
    """Total time that the run had a slot in all its epochs, up to `now` if it has one."""
    admitted = moment(run.admitted_at)
    current = ((moment(run.finished_at) or now) - admitted).total_seconds() if admitted else 0.0
    return run.earlier_seconds + run.ran_seconds + max(current, 0.0)


def error_sentence(run: run_pb2.Run) -> str | None:
    """Why the run failed; None unless it did."""
    if run.state != run_pb2.RUN_STATE_FAILED:
        return None
    return _ERROR_PREFIXES.get(run.error.reason, "") + run.error.message


def task_figures(task: summary_pb2.TaskSummary) -> dict[str, FigureShown]:
    """Figures by metric."""
    method = choice_scoring(task.scoring_method) or ""
    return {figure.metric: _figure(figure, method) for figure in task.metrics}


def choice_scoring(method: run_pb2.ScoringMethod.ValueType) -> str | None:
    """None for tasks without choices."""
    return word_of(run_pb2.ScoringMethod, method) if method else None


def timing_shown(timing: summary_pb2.TimingSummary) -> TimingShown:
    shown = {
        field.name: present(PercentilesShown, getattr(timing, field.name)) for field, _ in timing.ListFields()
    }
    return TimingShown(
        **{name if name == "tokens_per_second" else f"{name}_seconds": each for name, each in shown.items()}
    )


def _summary(run: run_pb2.Run, summary: summary_pb2.RunSummary, now: datetime) -> JobSummary:
    evaluated = [task for task in summary.tasks if task.answered]
    return JobSummary(
        total_evaluations=len(evaluated),
        total_samples=summary.answered,
        benchmarks_run=[task.task for task in evaluated],
        models_evaluated=1 if evaluated else 0,
        total_time_seconds=round(ran_seconds(run, now), 3),
        scoring_method={
            task.task: word_of(run_pb2.ScoringMethod, task.scoring_method) for task in summary.tasks
        },
        stand_in=[task.task for task in summary.tasks if task.is_stand_in],
        reused_answers=run.reused_answers,
        gpu_seconds=round(summary.gpu_seconds, 3),
    )


def _headline(summary: summary_pb2.RunSummary) -> str | None:
    benchmark = benchmark_group(summary.groups)
    return benchmark.metrics[0].metric if benchmark and benchmark.metrics else None


def _groups(summary: summary_pb2.RunSummary) -> dict[str, GroupFigures]:
    return {
        group.group: present(
            GroupFigures,
            group,
            figures={
                each.metric: _figure(each, _group_scoring(group, each.metric, summary))
                for each in group.metrics
            },
        )
        for group in summary.groups
    }


def _group_scoring(group: summary_pb2.GroupSummary, metric: str, summary: summary_pb2.RunSummary) -> str:
    """Scoring methods of the group's tasks that have the metric; of all its tasks if none has it."""
    members = [task for task in summary.tasks if task.task in group.tasks]
    having = [task for task in members if any(figure.metric == metric for figure in task.metrics)]
    methods = dict.fromkeys(choice_scoring(task.scoring_method) for task in having or members)
    return ", ".join(method for method in methods if method)


def _figure(figure: summary_pb2.MetricFigure, method: str) -> FigureShown:
    return present(FigureShown, figure, ci95=interval(figure), scoring_method=method)


def _rates(counts: summary_pb2.TaskSummary | summary_pb2.RunSummary) -> dict[str, float | None]:
    return {
        "unparsed_rate": _rate(counts.unparsed, counts.answered),
        "failed_rate": _rate(counts.failed, counts.answered + counts.failed),
    }


def _warnings(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> list[str]:
    rate = _rate(summary.unparsed, summary.answered)
    warning = unparsed_warning(rate, is_judging=run.order.HasField("judge"))
    return [warning] if warning else []


def _rate(count: int, of: int) -> float | None:
    return count / of if of else None
