"""Converts summaries to messages."""

from dataclasses import asdict, fields

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import run_pb2, summary_pb2
from services.results.figures.figure import Figure
from services.results.outcomes.timing_summary import TimingSummary
from services.results.runs.proto import timing_to_proto, usage_to_proto
from services.results.summaries.run_summary import GroupSummary, RunSummary, TaskSummary


def summary_to_proto(summary: RunSummary) -> summary_pb2.RunSummary:
    computed_at = Timestamp()
    computed_at.FromDatetime(summary.computed_at)
    return summary_pb2.RunSummary(
        run_id=summary.run_id,
        epoch=summary.epoch,
        is_partial=summary.is_partial,
        tasks=[task_summary_to_proto(task) for task in summary.tasks],
        failures=summary.failures,
        total=summary.total,
        answered=summary.answered,
        failed=summary.failed,
        unparsed=summary.unparsed,
        usage=usage_to_proto(summary.usage),
        mean_timing=timing_to_proto(summary.mean_timing),
        computed_at=computed_at,
        is_truncated_left=summary.is_truncated_left,
        groups=[_group_summary_to_proto(group) for group in summary.groups],
        timing=_timing_summary_to_proto(summary.timing),
        reused_answers=summary.reused_answers,
        cost=summary.cost,
        price=run_pb2.ModelPrice(**asdict(summary.price)) if summary.price else None,
    )


def _timing_summary_to_proto(timing: TimingSummary) -> summary_pb2.TimingSummary:
    spreads = {each.name: getattr(timing, each.name) for each in fields(timing)}
    told = {name: summary_pb2.Percentiles(**asdict(spread)) for name, spread in spreads.items() if spread}
    return summary_pb2.TimingSummary(**told)


def _group_summary_to_proto(group: GroupSummary) -> summary_pb2.GroupSummary:
    return summary_pb2.GroupSummary(
        group=group.group,
        tasks=group.tasks,
        metrics=[figure_to_proto(metric, figure) for metric, figure in group.figures.items()],
        missing_tasks=group.missing_tasks,
    )


def task_summary_to_proto(task: TaskSummary) -> summary_pb2.TaskSummary:
    return summary_pb2.TaskSummary(
        task=task.task,
        version=task.version,
        num_fewshot=task.num_fewshot,
        scoring_method=run_pb2.ScoringMethod.ValueType(task.scoring_method),
        is_stand_in=task.is_stand_in,
        total=task.total,
        answered=task.answered,
        failed=task.failed,
        unparsed=task.unparsed,
        metrics=[figure_to_proto(metric, figure) for metric, figure in task.figures.items()],
        dataset=task.dataset,
        dataset_revision=task.dataset_revision,
    )


def figure_to_proto(metric: str, figure: Figure) -> summary_pb2.MetricFigure:
    return summary_pb2.MetricFigure(
        metric=metric,
        mean=figure.mean,
        std=figure.std,
        stderr=figure.stderr,
        ci_low=figure.ci_low,
        ci_high=figure.ci_high,
        n=figure.n,
        interval_method=figure.interval_method,
        within_std=figure.within_std,
    )
