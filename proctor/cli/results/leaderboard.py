"""The leaderboard and the history as a person reads them.
`proctor leaderboard` and `proctor history`: runs of a suite in order.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway, Page
from proctor.cli.parsing import SCORING_METHODS, chosen
from proctor.cli.render import words as run_words
from proctor.cli.render.documents import document
from proctor.cli.render.table import RUN_ID_WIDTH, compact_table, two_lines
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.cli.render.words import NONE, interval, mean_and_half_width, scoring_word
from proctor.cli.suites.commands import refuse_unknown_suite
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import leaderboard_pb2
from proctor.v1 import leaderboard_service_pb2 as service_pb2

_TRENDS = {
    leaderboard_pb2.TREND_DIRECTION_UP: ("up", "green"),
    leaderboard_pb2.TREND_DIRECTION_DOWN: ("down", "red"),
    leaderboard_pb2.TREND_DIRECTION_STEADY: ("steady", ""),
}


def print_leaderboard(console: Console, suite: str, board: service_pb2.GetLeaderboardResponse) -> None:
    how = scoring_word(board.scoring_method)
    title = f"{suite} by {board.metric}{f', scored by {how}' if how else ''}"
    # Not the title of the table: that is folded to the width of its figures.
    say(console, title, style="bold")
    console.print(_board_table(console, board))
    more = board.total_models - len(board.entries)
    if more > 0:
        say(console, f"{more} more: --limit {min(board.total_models, 100)}", style="dim")
    if any(standing.is_selected_best for standing in board.entries):
        say(console, "* the best of several runs: selected, so its figure flatters", style="yellow")
    if any(standing.not_compared_with for standing in board.entries):
        say(
            console, "some pairs are not compared: a shared rank proves nothing of them (--json)", style="dim"
        )
    if board.unranked:
        console.print(_apart_table(console, board.unranked))


def history_table(console: Console, found: Sequence[leaderboard_pb2.LeaderboardEntry]) -> Table:
    """Two lines for each run: its id is needed and takes a line of its own."""
    table = compact_table(console)
    table.add_column("model, run", overflow="fold", min_width=RUN_ID_WIDTH)
    for column in ("suite", "closed", "scored, by", "trend"):
        table.add_column(column, overflow="fold")
    for standing in found:
        style = run_words.STATE_STYLES.get(standing.state, "")
        table.add_row(
            two_lines(standing.model, standing.run_id),
            standing.suite,
            two_lines(
                f"{standing.closed_at.ToDatetime():%Y-%m-%d}", run_words.state_word(standing.state), style
            ),
            two_lines(mean_and_half_width(standing.figure), scoring_word(standing.scoring_method)),
            _trend(standing.trend, "\n"),
        )
    return table


def _board_table(console: Console, board: service_pb2.GetLeaderboardResponse) -> Table:
    table = compact_table(console)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("model", overflow="fold")
    for column in ("score", "95 % interval", "tasks"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("trend", no_wrap=True)
    holders = Counter(standing.rank for standing in board.entries)
    for standing in board.entries:
        tie = "=" if holders[standing.rank] > 1 else ""
        mark = " *" if standing.is_selected_best else ""
        table.add_row(f"{standing.rank}{tie}", f"{standing.model}{mark}", *_figures(standing))
    table.add_section()
    for standing in board.baselines:
        table.add_row("", standing.model, *_figures(standing), style="dim")
    return table


def _apart_table(console: Console, apart: Sequence[leaderboard_pb2.LeaderboardEntry]) -> Table:
    table = compact_table(console, "Not ranked with the others")
    table.add_column("model", overflow="fold")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("because", overflow="fold")
    for standing in apart:
        table.add_row(standing.model, _score(standing), "; ".join(standing.unranked_because))
    return table


def _figures(standing: leaderboard_pb2.LeaderboardEntry) -> tuple[str | Text, ...]:
    return _score(standing), interval(standing.figure), str(standing.task_count or ""), _trend(standing.trend)


def _score(standing: leaderboard_pb2.LeaderboardEntry) -> str:
    return f"{standing.figure.mean:.4f}" if standing.figure.HasField("mean") else NONE


def _trend(trend: leaderboard_pb2.Trend, between: str = " ") -> Text:
    """Its p-value is in the JSON."""
    word, style = _TRENDS.get(trend.direction, ("", ""))
    size = f"{between}{trend.difference:+z.4f}" if word and trend.HasField("difference") else ""
    return Text(f"{word}{size}", style)


_METRIC_HELP = (
    "accuracy, score (the mean of each task's main metric), or any metric of the suite; "
    "else accuracy, or score where no task has it."
)

Metric = Annotated[str, typer.Option(help=_METRIC_HELP)]


def leaderboard(
    *,
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="A suite, such as glue.")],
    metric: Metric = "",
    best: Annotated[
        bool, typer.Option("--best", help="By each model's best run, not its latest; such are marked.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Models listed.")] = 10,
    scoring: Annotated[
        str, typer.Option(help=" | ".join(SCORING_METHODS) + "; auto: as most of them were scored.")
    ] = "auto",
    num_fewshot: Annotated[int | None, typer.Option(min=0, help="Examples in each prompt.")] = None,
    project: Annotated[int | None, typer.Option(min=0, help="Only runs of this project.")] = None,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Rank the models of a suite by their latest complete run; ties share a rank."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        request = service_pb2.GetLeaderboardRequest(
            suite=suite,
            metric=metric,
            limit=limit,
            is_best=best,
            scoring_method=chosen(SCORING_METHODS, scoring, "--scoring"),
            num_fewshot=num_fewshot,
            project_id=project,
        )
        async with ProctorClient(find_gateway(gateway)) as client:
            board = await client.standings.leaderboard(request)
            if not board.entries and not board.unranked:
                await refuse_unknown_suite(client, suite)
        if as_json:
            terminal.emit(document(board))
        elif board.entries or board.unranked:
            print_leaderboard(terminal.out, suite, board)
        else:
            say(terminal.out, f"No complete run of {suite} has {board.metric} yet.")
        return ExitCode.OK

    execute(terminal, work)


def history(
    *,
    model: Annotated[str, typer.Option(help="Only this model, provider/name.")] = "",
    suite: Annotated[str, typer.Option(help="Only this suite.")] = "",
    days: Annotated[int, typer.Option(min=1, max=3650, help="Runs closed in the last so many days.")] = 30,
    metric: Metric = "",
    limit: Annotated[int, typer.Option(min=1, max=500, help="Runs per page.")] = 20,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """List closed runs with their figures, newest first."""
    terminal = Terminal(as_json)
    request = service_pb2.GetHistoryRequest(
        model=model, suite=suite, days=days, metric=metric, page_size=limit, page_token=page
    )

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            found = await client.standings.history(request)
            if not found.total:
                await refuse_unknown_suite(client, suite)
        if as_json:
            terminal.emit(document(found))
            return ExitCode.OK
        terminal.out.print(history_table(terminal.out, found.entries))
        rest = f"; the next page: --page {found.next_page_token}" if found.next_page_token else ""
        say(terminal.out, f"{found.total} runs in the last {days} days{rest}", style="dim")
        return ExitCode.OK

    execute(terminal, work)
