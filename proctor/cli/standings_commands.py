"""`proctor leaderboard` and `proctor history`: runs of a suite in order."""

from typing import Annotated

import typer

from proctor.cli.command_options import AsJson, Gateway, Page
from proctor.cli.exit_codes import ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.order_options import SCORING_METHODS, chosen
from proctor.cli.standings_tables import history_table, print_leaderboard
from proctor.cli.suite_names import refuse_unknown_suite
from proctor.cli.terminal import Terminal, execute, say
from proctor.client import ProctorClient
from proctor.v1 import leaderboard_service_pb2 as service_pb2

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
