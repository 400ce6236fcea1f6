"""The figures of a run: rows for programs, a table in a notebook, lines on a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proctor.client.html_table import Cell, Interval, html_table
from proctor.client.text_table import shown, text_table
from proctor.v1 import run_pb2, summary_pb2
from proctor.wire.enums import word_of
from proctor.wire.report import unparsed_share
from proctor.wire.rollout_orders import answering_model

_HEAD = ("task", "metric", "figure", "95 %", "n")


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A figure of a task or group, mostly a share of one, and its 95 % interval. None means undefined."""

    name: str
    metric: str
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class RunResults:
    """`await client.results(run_id)`. The last line of a cell shows it as a table with interval plots."""

    run: run_pb2.Run
    summary: summary_pb2.RunSummary

    @property
    def figures(self) -> list[RunFigure]:
        """Groups of several tasks first, then tasks; each with all its metrics."""
        named = [(group.group, group.metrics) for group in self.summary.groups if len(group.tasks) > 1]
        named += [(task.task, task.metrics) for task in self.summary.tasks]
        return [_figure(name, figure) for name, figures in named for figure in figures]

    @property
    def title(self) -> str:
        order = self.run.order
        benchmark = self.run.dataset_name or order.suite or order.dataset_id
        counts = f"{self.summary.answered} answered, {self.summary.failed} failed"
        state, unparsed = word_of(run_pb2.RunState, self.run.state), unparsed_share(self.summary)
        parts = (f"{answering_model(order)} on {benchmark}: {state}", counts, unparsed)
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        return text_table(self.title, _HEAD, self._cells())

    def _repr_html_(self) -> str:
        """HTML for Jupyter."""
        plots = (Interval(each.mean, each.ci_low, each.ci_high) for each in self.figures)
        rows: Iterator[Sequence[Cell]] = (
            (*cells, plot) for cells, plot in zip(self._cells(), plots, strict=True)
        )
        return html_table(self.title, (*_HEAD, ""), rows, origin=None)

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for each in self.figures:
            has_interval = each.ci_low is not None and each.ci_high is not None
            interval = f"{shown(each.ci_low)} to {shown(each.ci_high)}" if has_interval else ""
            yield each.name, each.metric, shown(each.mean), interval, str(each.n)


def _figure(name: str, figure: summary_pb2.MetricFigure) -> RunFigure:
    return RunFigure(
        name=name,
        metric=figure.metric,
        mean=figure.mean if figure.HasField("mean") else None,
        ci_low=figure.ci_low if figure.HasField("ci_low") else None,
        ci_high=figure.ci_high if figure.HasField("ci_high") else None,
        n=figure.n,
    )
