"""Figures as they go out over HTTP: each with the way it was scored, undefined ones as null."""

from proctor.v1 import summary_pb2
from services.gateway.proto_words import choice_scoring
from services.gateway.runs.http_job_bodies import Figure


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
