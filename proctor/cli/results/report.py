"""`proctor report`: a model's suites, data sets and rollouts side by side, by their latest completed runs."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, numbers, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.words import JsonValue, document, mean_and_half_width, money
from proctor.cli.results.figures import figures_so_far
from proctor.client.errors import NotFound
from proctor.client.pages import all_pages
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2, run_pb2, summary_pb2
from proctor.values.run import MAX_HISTORY_DAYS
from proctor.wire.report import ReportKind, figures_of, kind_of, latest_complete, run_note

_SCORE = "score"
_PAGE_SIZE = 500
_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The model, and how old its runs may be."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="provider/name, as runs name it.")]
    days: Annotated[
        int,
        typer.Option(min=1, max=MAX_HISTORY_DAYS, help="Runs closed in the last N days."),
    ] = MAX_HISTORY_DAYS


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The latest completed run over a suite, a data set or tasks of rollouts."""

    kind: ReportKind
    benchmark: str
    entry: leaderboard_pb2.LeaderboardEntry
    run: run_pb2.Run
    summary: summary_pb2.RunSummary

    @property
    def figures(self) -> Sequence[summary_pb2.MetricFigure]:
        return figures_of(self.summary)


async def report(session: Session, options: ReportOptions) -> None:
    """Show a model's suites, data sets and rollouts side by side, each by its latest completed run."""
    rows = await _rows(session.client, options)
    if session.terminal.is_json:
        shown: list[JsonValue] = [_document(row) for row in rows]
        session.terminal.emit({"model": options.model, "rows": shown})
        return
    print_report(session.terminal.out, options.model, rows)


async def _rows(client: ProctorClient, options: ReportOptions) -> list[ReportRow]:
    """Suites first, then data sets and rollouts; each kind by name. Raises NotFound without a run."""
    closed = [entry async for entry in _closed(client, options)]
    latest = latest_complete(closed)
    if not latest:
        incomplete = f" {len(closed)} finished without completing." if closed else ""
        raise NotFound(
            f"No completed run of {options.model} in the last {options.days} days.{incomplete} "
            "`proctor history` lists the runs and names their models.",
            "RUN_NOT_FOUND",
        )
    limit = asyncio.Semaphore(_AT_A_TIME)

    async def row(entry: leaderboard_pb2.LeaderboardEntry) -> ReportRow:
        async with limit:
            run, summary = await asyncio.gather(
                client.run(entry.run_id), figures_so_far(client, entry.run_id)
            )
        return ReportRow(kind_of(entry, summary), entry.dataset_name or entry.benchmark, entry, run, summary)

    rows = await asyncio.gather(*(row(entry) for entry in latest.values()))
    return sorted(
        rows, key=lambda each: ([*ReportKind].index(each.kind), each.benchmark, each.entry.benchmark)
    )


async def _closed(
    client: ProctorClient, options: ReportOptions
) -> AsyncIterator[leaderboard_pb2.LeaderboardEntry]:
    """Closed runs of the model, newest first."""
    request = leaderboard_service_pb2.ListHistoryRequest(
        model=options.model, days=options.days, metric=_SCORE, page_size=_PAGE_SIZE
    )
    async for page in all_pages(client.leaderboard.ListHistory, request):
        for entry in page.entries:
            yield entry


def print_report(console: Console, model: str, rows: Sequence[ReportRow]) -> None:
    """A table for each kind; two lines or more for each run, because its id takes a whole line."""
    say(console, f"{model}: the latest completed run of each", style="bold")
    for kind in ReportKind:
        of_kind = [row for row in rows if row.kind == kind]
        if not of_kind:
            continue
        columns = (
            Column("name, run", min_width=RUN_ID_WIDTH),
            *texts("metric"),
            *numbers("mean ± 95 %", "n", "cost"),
            Column("closed", "whole"),
        )
        console.print(table(console, columns, map(_cells, of_kind), kind.heading))
    absent = [kind.heading.lower() for kind in ReportKind if all(row.kind != kind for row in rows)]
    if absent:
        say(console, f"No completed run over {' or '.join(absent)}.", style="dim")


def _cells(row: ReportRow) -> tuple[Cell, ...]:
    figures = row.figures
    note = run_note(row.run, row.summary)
    lines = f"{row.entry.run_id}\n{note}" if note else row.entry.run_id
    return (
        two_lines(row.benchmark, lines),
        "\n".join(figure.metric for figure in figures) or "not scored",
        "\n".join(map(mean_and_half_width, figures)),
        "\n".join(f"{figure.n:,}" for figure in figures) or f"{row.summary.answered:,}",
        "\n".join(_spent(row)),
        f"{row.entry.closed_at.ToDatetime():%Y-%m-%d}",
    )


def _spent(row: ReportRow) -> Iterator[str]:
    if row.summary.HasField("cost"):
        yield money(row.summary.cost, row.summary.price.currency)
    yield f"{row.summary.usage.prompt_tokens + row.summary.usage.completion_tokens:,} tok"


def _document(row: ReportRow) -> JsonValue:
    summary = row.summary
    return {
        "kind": row.kind.value,
        "benchmark": row.benchmark,
        "run_id": row.entry.run_id,
        "closed_at": row.entry.closed_at.ToJsonString(),
        "figures": [document(figure) for figure in row.figures],
        "answered": summary.answered,
        "failed": summary.failed,
        "unparsed": summary.unparsed,
        "cost": summary.cost if summary.HasField("cost") else None,
        "currency": summary.price.currency,
        "usage": document(summary.usage),
        "limit": row.run.order.limit if row.run.order.HasField("limit") else None,
        "tasks": list(row.run.order.tasks),
        "rollouts": max(1, row.run.order.rollouts),
    }
