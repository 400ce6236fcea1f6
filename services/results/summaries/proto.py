"""Converts summaries to messages."""

from collections.abc import Mapping
from datetime import datetime

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from proctor.v1 import summary_pb2
from proctor.values.names.contamination import ContaminationKind
from proctor.wire.convert import Codec
from services.common.checked_fields import checked_choice, checked_text
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import (
    ContaminationDifference,
    ContaminationFigure,
    GroupSummary,
    RunSummary,
    TaskSummary,
)

SUMMARY = Codec(
    RunSummary,
    summary_pb2.RunSummary,
    unpaired={"tasks", "groups", "answered", "failed", "unparsed", "cost", "unscored", "contamination"},
)
GROUP = Codec(GroupSummary, summary_pb2.GroupSummary, unpaired={"figures", "metrics"})
TASK = Codec(TaskSummary, summary_pb2.TaskSummary, unpaired={"figures", "metrics"})
_DIFFERENCE = Codec(ContaminationDifference, summary_pb2.ContaminationDifference)
CONTAMINATION = Codec(
    ContaminationFigure,
    summary_pb2.ContaminationFigure,
    nested=[_DIFFERENCE],
    unpaired={"share", "ci_low", "ci_high"},
)
FIGURE = Codec(Figure, summary_pb2.MetricFigure, unpaired={"metric", "degrees_of_freedom", "is_fraction"})


def summary_to_proto(summary: RunSummary) -> summary_pb2.RunSummary:
    message = SUMMARY.to_proto(summary)
    message.answered, message.failed, message.unparsed = summary.answered, summary.failed, summary.unparsed
    if summary.cost is not None:
        message.cost = summary.cost
    for task in summary.tasks:
        message.tasks.append(task_summary_to_proto(task))
    for group in summary.groups:
        sent = message.groups.add()
        GROUP.fill(sent, group)
        _add_figures(sent.metrics, group.figures)
    message.contamination.extend(map(_contamination_to_proto, summary.contamination))
    return message


def contamination_from_proto(
    message: summary_pb2.ContaminationFigure, user: str, now: datetime
) -> ContaminationFigure:
    return ContaminationFigure(
        kind=checked_choice("figure.kind", ContaminationKind, message.kind),
        corpus=checked_text("figure.corpus", message.corpus).strip(),
        found=message.found,
        searched=message.searched,
        recorded_at=now,
        user=user,
        ngram=message.ngram,
        differences=tuple(
            ContaminationDifference(
                checked_text("figure.differences", one.metric), one.difference, one.ci_low, one.ci_high
            )
            for one in message.differences
        ),
    )


def _contamination_to_proto(figure: ContaminationFigure) -> summary_pb2.ContaminationFigure:
    message = CONTAMINATION.to_proto(figure)
    message.ci_low, message.ci_high = figure.interval.low, figure.interval.high
    message.share = figure.share
    return message


def task_summary_to_proto(task: TaskSummary) -> summary_pb2.TaskSummary:
    message = TASK.to_proto(task)
    _add_figures(message.metrics, task.figures)
    return message


def figure_to_proto(metric: str, figure: Figure) -> summary_pb2.MetricFigure:
    message = FIGURE.to_proto(figure)
    message.metric = metric
    return message


def _add_figures(
    messages: RepeatedCompositeFieldContainer[summary_pb2.MetricFigure], figures: Mapping[str, Figure]
) -> None:
    messages.extend(figure_to_proto(metric, figure) for metric, figure in figures.items())
