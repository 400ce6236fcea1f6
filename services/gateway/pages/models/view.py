"""View of a model: its suites, data sets and rollouts side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import leaderboard_pb2, run_pb2, summary_pb2
from proctor.values.usage import TokenUsage
from proctor.wire.report import ReportKind, figures_of, kind_of, run_note
from proctor.wire.values import USAGE
from services.gateway.api.leaderboard import history_entry
from services.gateway.http.presentation import optional, present
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.rows.closed_runs import ClosedRun
from services.gateway.pages.rows.figure import Figure


class BenchmarkRow(ClosedRun):
    """The latest completed run over one suite, data set or set of tasks."""

    figures: list[Figure]
    note: str
    usage: TokenUsage
    cost: float | None
    currency: str


@dataclass(frozen=True, slots=True)
class SeveralModels:
    """The models of several providers that have the name of an address."""

    given: str
    candidates: Sequence[str]


@dataclass(frozen=True, slots=True)
class ModelView:
    """`tables` are kinds with their rows, without empty ones."""

    model: str
    tables: Sequence[tuple[str, Sequence[BenchmarkRow]]]
    scale: Scale
    total: int
    now: datetime


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The newest complete run of the model over one benchmark."""

    entry: leaderboard_pb2.LeaderboardEntry
    run: run_pb2.Run
    summary: summary_pb2.RunSummary


def model_view(model: str, runs: Sequence[ModelRun], total: int, now: datetime) -> ModelView:
    """`total` counts all closed runs of the model."""
    of_kind: dict[ReportKind, list[BenchmarkRow]] = {kind: [] for kind in ReportKind}
    for each in runs:
        of_kind[kind_of(each.entry, each.summary)].append(_row(each))
    tables = [
        (kind.heading, sorted(rows, key=lambda row: row.benchmark)) for kind, rows in of_kind.items() if rows
    ]
    scale = Scale.of_figures(figure for _, rows in tables for row in rows for figure in row.figures)
    return ModelView(model, tables, scale, total, now)


def _row(each: ModelRun) -> BenchmarkRow:
    return history_entry(
        BenchmarkRow,
        each.entry,
        figures=[present(Figure, figure) for figure in figures_of(each.summary)],
        note=run_note(each.run, each.summary),
        usage=USAGE.from_proto(each.summary.usage),
        cost=optional(each.summary, "cost"),
        currency=each.summary.price.currency,
    )
