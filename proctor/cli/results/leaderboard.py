"""`proctor leaderboard` and `proctor history`: the runs of a benchmark by rank and by time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway import Session
from proctor.cli.options import PageOption, ProjectFilter
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, numbers, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.words import (
    NONE,
    STATE_STYLES,
    interval,
    mean_and_half_width,
    option_value,
    scoring_word,
    state_word,
)
from proctor.cli.suites.known_suites import refuse_unknown_benchmark
from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2, run_pb2
from proctor.values.plain import total_text
from proctor.values.run import MAX_HISTORY_DAYS, MAX_LEADERBOARD_MODELS, unparsed_warning
from proctor.wire.enums import words_of
from proctor.wire.report import suspicions_of_entry

_TRENDS = {
    leaderboard_pb2.TREND_DIRECTION_UP: ("up", "green"),
    leaderboard_pb2.TREND_DIRECTION_DOWN: ("down", "red"),
    leaderboard_pb2.TREND_DIRECTION_STEADY: ("steady", ""),
}

# The value of a condition that is not set.
_UNSET = "none"

MetricOption = Annotated[
    str,
    typer.Option(
        help="accuracy, score (the mean of each task's main metric), or any metric of the benchmark; "
        "default: the headline figure, which the suite names."
    ),
]


@dataclass(frozen=True, slots=True)
class LeaderboardOptions:
    """The runs that are ranked, and by which figure."""

    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="A suite, such as glue, or the id of a data set.")
    ]
    metric: MetricOption = ""
    best: Annotated[
        bool, typer.Option("--best", help="Rank by each model's best run, not its latest; it is marked.")
    ] = False
    max_entries: Annotated[int, typer.Option(min=1, max=MAX_LEADERBOARD_MODELS, help="Models listed.")] = 10
    scoring_method: Annotated[
        str,
        typer.Option(help=f"auto | {' | '.join(words_of(run_pb2.ScoringMethod))}; auto: the most frequent."),
    ] = "auto"
    num_fewshot: Annotated[int | None, typer.Option(min=0, help="Examples in each prompt.")] = None
    project: ProjectFilter = None
    include_limited: Annotated[
        bool,
        typer.Option(
            "--include-limited",
            help="Rank runs of the first rows too, those of one limit; else only where no run is whole.",
        ),
    ] = False
    like: Annotated[
        str, typer.Option(metavar="RUN", help="Rank the runs under all evaluation conditions of this one.")
    ] = ""

    def to_proto(self) -> leaderboard_service_pb2.GetLeaderboardRequest:
        return leaderboard_service_pb2.GetLeaderboardRequest(
            benchmark=self.benchmark,
            metric=self.metric,
            max_entries=self.max_entries,
            is_best=self.best,
            scoring_method=option_value(
                run_pb2.ScoringMethod, self.scoring_method, "--scoring-method", unset="auto"
            ),
            num_fewshot=self.num_fewshot,
            project_id=self.project,
            includes_limited=self.include_limited,
            like_run_id=self.like,
        )


async def leaderboard(session: Session, options: LeaderboardOptions) -> None:
    """Rank the models of a benchmark by their latest completed run; ties share a rank."""
    benchmark = options.benchmark
    found = await session.client.leaderboard.GetLeaderboard(options.to_proto())
    is_empty = not (found.entries or found.unranked)
    if is_empty:
        await refuse_unknown_benchmark(session.client, benchmark)
    if is_empty and not session.terminal.is_json:
        say(session.terminal.out, f"No completed run of {benchmark} has {found.metric} yet.")
    else:
        session.terminal.show(found, lambda console, shown: print_leaderboard(console, benchmark, shown))


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Which closed runs are listed."""

    model: Annotated[str, typer.Option(help="Only this model, provider/name.")] = ""
    benchmark: Annotated[
        str, typer.Option("--suite", help="Only this suite, or the data set with this id.")
    ] = ""
    days: Annotated[
        int,
        typer.Option(min=1, max=MAX_HISTORY_DAYS, help="Runs closed in the last N days."),
    ] = 30
    metric: MetricOption = ""
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Runs per page.")] = 20
    page: PageOption = ""


async def history(session: Session, options: HistoryOptions) -> None:
    """List closed runs with their figures, newest first."""
    request = leaderboard_service_pb2.ListHistoryRequest(
        model=options.model,
        benchmark=options.benchmark,
        days=options.days,
        metric=options.metric,
        page_size=options.page_size,
        page_token=options.page,
    )

    def show(console: Console, found: leaderboard_service_pb2.ListHistoryResponse) -> None:
        console.print(history_table(console, found.entries))
        rest = f"; the next page: --page {found.next_page_token}" if found.next_page_token else ""
        say(console, f"{total_text(found.total)} runs in the last {options.days} days{rest}", style="dim")

    found = await session.client.leaderboard.ListHistory(request)
    if not found.total:
        await refuse_unknown_benchmark(session.client, options.benchmark)
    session.terminal.show(found, show)


def print_leaderboard(
    console: Console, benchmark: str, found: leaderboard_service_pb2.GetLeaderboardResponse
) -> None:
    method = scoring_word(found.scoring_method)
    # The title of a rich table would be folded to the width of its columns.
    direction = ", less is better" if found.less_is_better else ""
    scored = f", scored by {method}" if method else ""
    say(console, f"{benchmark} by {found.metric}{direction}{scored}", style="bold")
    console.print(_ranked_table(console, found))
    if found.note:
        say(console, found.note, style="yellow")
    if found.total_models > len(found.entries):
        more = found.total_models - len(found.entries)
        say(
            console,
            f"{more} more: --max-entries {min(found.total_models, MAX_LEADERBOARD_MODELS)}",
            style="dim",
        )
    if found.HasField("noise_floor"):
        noise = f"two single runs must differ by {found.noise_floor:.4f} here"
        say(console, f"{noise}: {found.repeated_runs} repeated runs of a model differ by less", style="dim")
    if any(entry.is_selected_best for entry in found.entries):
        say(console, "* the best of several runs: selected, so its figure flatters", style="yellow")
    if found.pending_comparisons:
        pairs = f"{found.pending_comparisons} pairs are still being compared: ask again in some seconds"
        say(console, pairs, style="yellow")
    elif any(entry.not_compared_with for entry in found.entries):
        note = "some pairs are not compared: a shared rank does not prove them equal (--json)"
        say(console, note, style="dim")
    _print_conditions(console, found)


def _print_conditions(console: Console, found: leaderboard_service_pb2.GetLeaderboardResponse) -> None:
    """The share of unparsed answers, suspicions, and who is ranked with whom."""
    for entry in (*found.entries, *found.unranked):
        if entry.HasField("unparsed_rate") and (
            warning := unparsed_warning(entry.unparsed_rate, entry.model)
        ):
            say(console, warning, style="yellow")
        if suspicions := suspicions_of_entry(entry):
            say(console, f"{entry.model}: {suspicions}", style="yellow")
    if found.conditions:
        values = "; ".join(f"{one.name} {one.value}" for one in found.conditions if one.value != _UNSET)
        say(console, f"conditions: {values}", style="dim")
    if found.unranked:
        say(
            console, "Not ranked with the others; --like RUN ranks the runs under the same conditions as RUN:"
        )
    for entry in found.unranked:
        unparsed = f", {_unparsed(entry)} unparsed" if entry.unparsed_rate else ""
        say(console, Text.assemble((entry.model, "bold"), f"  {_score(entry)}{unparsed}"))
        say(console, f"   run {entry.run_id}: {'; '.join(entry.unranked_because)}", style="dim")


def history_table(console: Console, entries: Sequence[leaderboard_pb2.LeaderboardEntry]) -> Table:
    """Two lines per run, because its id takes a whole line."""
    columns = (
        Column("model, run", min_width=RUN_ID_WIDTH),
        *texts("benchmark", "closed", "scored, by", "trend"),
    )
    return table(console, columns, map(_history_cells, entries))


def _history_cells(entry: leaderboard_pb2.LeaderboardEntry) -> tuple[Cell, ...]:
    closed, style = f"{entry.closed_at.ToDatetime():%Y-%m-%d}", STATE_STYLES.get(entry.state, "")
    return (
        two_lines(entry.model, entry.run_id),
        entry.benchmark,
        two_lines(closed, state_word(entry.state), style),
        two_lines(mean_and_half_width(entry.figure), _scored(entry)),
        _trend(entry.trend, "\n"),
    )


def _scored(entry: leaderboard_pb2.LeaderboardEntry) -> str:
    unparsed = f"{_unparsed(entry)} unparsed" if entry.unparsed_rate else ""
    return ", ".join(part for part in (scoring_word(entry.scoring_method), unparsed) if part)


def _ranked_table(console: Console, found: leaderboard_service_pb2.GetLeaderboardResponse) -> Table:
    columns = (
        *numbers("rank"),
        Column("model"),
        *numbers("score", "95 % interval", "tasks", "runs", "unparsed"),
        Column("trend", "whole"),
    )
    made = table(console, columns)
    entries_of_rank = Counter(entry.rank for entry in found.entries)
    for entry in found.entries:
        tie = "=" if entries_of_rank[entry.rank] > 1 else ""
        mark = " *" if entry.is_selected_best else ""
        made.add_row(
            f"{entry.rank}{tie}",
            f"{entry.model}{mark}",
            *_figures(entry, less_is_better=found.less_is_better),
        )
    made.add_section()
    for entry in found.baselines:
        made.add_row("", entry.model, *_figures(entry), style="dim")
    return made


def _figures(entry: leaderboard_pb2.LeaderboardEntry, *, less_is_better: bool = False) -> tuple[Cell, ...]:
    tasks = str(entry.task_count or "")
    runs = total_text(entry.run_count) if entry.run_count else ""
    return (
        _score(entry),
        interval(entry.figure),
        tasks,
        runs,
        _unparsed(entry),
        _trend(entry.trend, less_is_better=less_is_better),
    )


def _unparsed(entry: leaderboard_pb2.LeaderboardEntry) -> str:
    return f"{entry.unparsed_rate:.1%}" if entry.HasField("unparsed_rate") else ""


def _score(entry: leaderboard_pb2.LeaderboardEntry) -> str:
    return f"{entry.figure.mean:.4f}" if entry.figure.HasField("mean") else NONE


def _trend(trend: leaderboard_pb2.Trend, between: str = " ", *, less_is_better: bool = False) -> Text:
    """A trend without its p-value, which --json has."""
    word, style = _TRENDS.get(trend.direction, ("", ""))
    if less_is_better:
        style = {"green": "red", "red": "green"}.get(style, style)
    size = f"{between}{trend.difference:+z.4f}" if word and trend.HasField("difference") else ""
    return Text(f"{word}{size}", style)
