"""Commands about runs that exist: `runs`, `runs delete`, `results`, `cancel`, `retry`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway_address import find_gateway, program_name
from proctor.cli.options import AsJson, Gateway, Page, RunId
from proctor.cli.render import words as run_words
from proctor.cli.render.documents import document
from proctor.cli.render.table import RUN_ID_WIDTH, compact_table, two_lines
from proctor.cli.render.terminal import EXIT_CODES_HELP, ExitCode, Terminal, execute, say, tell_changed
from proctor.cli.suites.commands import refuse_unknown_suite
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient, RunFilter
from proctor.v1 import run_pb2


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


def _state(word: str) -> run_pb2.RunState.ValueType:
    try:
        return run_words.state_of_word(word) if word else run_pb2.RUN_STATE_UNSPECIFIED
    except ValueError as error:
        known = "pending, running, completed, failed or cancelled"
        raise Refused(f"--state {word}: it must be {known}.", "INVALID_PARAMETER") from error
