"""Commands about runs that exist: `runs`, `runs delete`, `results`, `cancel`, `retry`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli import run_words
from proctor.cli.command_options import AsJson, Gateway, Page, RunId
from proctor.cli.compact_table import RUN_ID_WIDTH, compact_table, two_lines
from proctor.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from proctor.cli.filter_options import (
    MaxLength,
    MaxScore,
    MinLength,
    MinScore,
    OfMetric,
    OnlyGolden,
    RowPart,
    TextPart,
    is_set,
    refuse_empty_range,
)
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import Json, document
from proctor.cli.outcomes_table import OutcomeChoice, outcome_status, print_outcomes
from proctor.cli.program_name import program_name
from proctor.cli.suite_names import refuse_unknown_suite
from proctor.cli.summary_table import figures_so_far, print_summary
from proctor.cli.terminal import Terminal, execute, say
from proctor.client import ProctorClient, RunFilter
from proctor.client_errors import Refused
from proctor.v1 import outcome_pb2, results_service_pb2, run_pb2


def runs(
    context: typer.Context,
    *,
    state: Annotated[str, typer.Option(help="pending, running, completed, failed, cancelled.")] = "",
    suite: Annotated[str, typer.Option(help="Only this suite.")] = "",
    dataset: Annotated[str, typer.Option(metavar="ID", help="Only over this data set.")] = "",
    model: Annotated[str, typer.Option(help="Only this model.")] = "",
    project: Annotated[int | None, typer.Option(help="Only this project.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Runs per page.")] = 20,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first; or delete one."""
    if context.invoked_subcommand:
        return
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        chosen = RunFilter(_state(state), suite, model, project, dataset)
        async with ProctorClient(find_gateway(gateway)) as client:
            found = await client.list_runs(chosen, page_size=limit, page_token=page)
            if not found.total:
                await refuse_unknown_suite(client, suite or dataset)
        if as_json:
            terminal.emit(document(found))
            return ExitCode.OK
        if not found.runs and not page:
            say(terminal.out, "There is no run yet." if chosen == RunFilter() else "There is no such run.")
            return ExitCode.OK
        terminal.out.print(runs_table(terminal.out, list(found.runs)))
        if found.next_page_token:
            more = f"{found.total} in all; the next page: --page {found.next_page_token}"
            say(terminal.out, more, style="dim")
        return ExitCode.OK

    execute(terminal, work)


def results(
    *,
    run_id: RunId,
    outcomes: Annotated[bool, typer.Option("--outcomes", help="Also list answers, one by one.")] = False,
    task: Annotated[str, typer.Option(help="Only answers of this task.")] = "",
    status: Annotated[str, typer.Option(help="Only scored, unparsed or failed ones.")] = "",
    row_id: RowPart = "",
    text: TextPart = "",
    metric: OfMetric = "",
    min_score: MinScore = None,
    max_score: MaxScore = None,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    golden: OnlyGolden = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Answers per page.")] = 20,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show the figures of a run, partial while it runs; with --outcomes or a filter what the model said."""
    terminal = Terminal(as_json)
    wanted = results_service_pb2.OutcomeFilter(
        row_id=row_id,
        text=text,
        metric=metric,
        min_score=min_score,
        max_score=max_score,
        min_characters=min_length,
        max_characters=max_length,
        is_golden=golden,
    )
    is_about_answers = outcomes or task or status or page or is_set(wanted)
    chosen = OutcomeChoice(task, status, limit, page, wanted) if is_about_answers else None

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            await _show_results(client, run_id, terminal, chosen)
        return ExitCode.OK

    execute(terminal, work)


def cancel(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Cancel a run: requests in flight are aborted, what is recorded stays."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            run = await client.cancel_run(run_id)
        return tell_changed(terminal, run, f"Run {run_id} was cancelled; what is recorded stays.")

    execute(terminal, work)


def retry(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Run a failed or cancelled run again, for what is missing only."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            run = await client.retry_run(run_id)
        watch = f"`{program_name()} watch {run_id}`"
        how = f"asks only for what is missing{run_words.urgency(run)}"
        sentence = f"Run {run_id} is pending again and {how}: {watch}."
        return tell_changed(terminal, run, sentence)

    execute(terminal, work)


def delete(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Delete a run that is over, with its answers; comparisons and leaderboards lose it as well."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            await client.delete_run(run_id)
        if as_json:
            terminal.emit({"run_id": run_id})
        else:
            say(terminal.out, f"Run {run_id} is gone, with its answers.")
        return ExitCode.OK

    execute(terminal, work)


def runs_group() -> typer.Typer:
    group = typer.Typer(invoke_without_command=True, epilog=EXIT_CODES_HELP, callback=runs)
    group.command(epilog=EXIT_CODES_HELP)(delete)
    return group


def runs_table(console: Console, found: list[run_pb2.Run]) -> Table:
    """Two lines for each run: its id is needed and takes a line of its own."""
    table = compact_table(console)
    table.add_column("model, run", overflow="fold", min_width=RUN_ID_WIDTH)
    for column in ("over, project", "created (UTC)", "state, took"):
        table.add_column(column, overflow="fold")
    for run in found:
        took = run_words.elapsed_seconds(run)
        state = Text(run_words.state_word(run.state), run_words.STATE_STYLES.get(run.state, ""))
        table.add_row(
            two_lines(run.order.model, run.run_id),
            two_lines(run_words.subject(run), str(run.order.project_id)),
            two_lines(*f"{run.created_at.ToDatetime():%Y-%m-%d %H:%M:%S}".split()),
            two_lines(state, run_words.duration(took) if took else ""),
        )
    return table


async def _show_results(
    client: ProctorClient, run_id: str, terminal: Terminal, chosen: OutcomeChoice | None
) -> None:
    if chosen:
        refuse_empty_range(chosen.filter)
    run = await client.get_run(run_id)
    summary = await figures_so_far(client, run_id)
    page = None
    if chosen:
        request = results_service_pb2.ListOutcomesRequest(
            run_id=run_id,
            page_size=chosen.limit,
            page_token=chosen.page,
            task=chosen.task,
            status=outcome_status(chosen.status),
            filter=chosen.filter if is_set(chosen.filter) else None,
        )
        page = await _filled_page(client, request)
    if terminal.is_json:
        shown: dict[str, Json] = {"run": document(run), "summary": document(summary)}
        if page:
            shown |= {"outcomes": [document(item) for item in page[0]], "next_page_token": page[1]}
        terminal.emit(shown)
        return
    print_summary(terminal.out, run, summary)
    if page:
        print_outcomes(terminal.out, *page)


async def _filled_page(
    client: ProctorClient, request: results_service_pb2.ListOutcomesRequest
) -> tuple[list[outcome_pb2.RecordedOutcome], str]:
    """A server looks through many answers in several calls, and few of them may match."""
    most, found = request.page_size, list[outcome_pb2.RecordedOutcome]()
    while True:
        listed, request.page_token = await client.list_outcomes(request)
        found += listed
        if not request.page_token or len(found) >= most:
            return found, request.page_token
        request.page_size = most - len(found)


def tell_changed(terminal: Terminal, run: run_pb2.Run, sentence: str) -> ExitCode:
    if terminal.is_json:
        terminal.emit({"run": document(run)})
    else:
        say(terminal.out, sentence)
    return ExitCode.OK


def _state(word: str) -> run_pb2.RunState.ValueType:
    try:
        return run_words.state_of_word(word) if word else run_pb2.RUN_STATE_UNSPECIFIED
    except ValueError as error:
        known = "pending, running, completed, failed or cancelled"
        raise Refused(f"--state {word}: it must be {known}.", "INVALID_PARAMETER") from error
