"""`proctor runs`, `runs delete`, `cancel` and `retry`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from proctor.cli.gateway import Session, command_group, program_name
from proctor.cli.options import PageOption, RunIdArgument
from proctor.cli.render import words
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, date_and_time, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.words import document
from proctor.cli.suites.commands import refuse_unknown_suite
from proctor.v1 import run_pb2, scheduler_service_pb2


async def runs(
    session: Session,
    *,
    state: Annotated[str, typer.Option(help="pending, running, completed, failed, cancelled.")] = "",
    suite: Annotated[str, typer.Option(help="Only this suite.")] = "",
    dataset: Annotated[str, typer.Option(metavar="ID", help="Only over this data set.")] = "",
    model: Annotated[str, typer.Option(help="Only this model.")] = "",
    project: Annotated[int | None, typer.Option(help="Only this project.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Runs per page.")] = 20,
    page: PageOption = "",
) -> None:
    """List runs, newest first; or delete one."""
    chosen = scheduler_service_pb2.ListRunsRequest(
        state=words.option_value(run_pb2.RunState, state, "--state"),
        suite=suite,
        model=model,
        project_id=project,
        dataset_id=dataset,
    )
    is_filtered = bool(chosen.ListFields())
    chosen.page_size, chosen.page_token = limit, page
    found = await session.client.list_runs(chosen)
    if not found.total:
        await refuse_unknown_suite(session.client, suite or dataset)
    if found.runs or page or session.terminal.is_json:
        session.terminal.show(found, print_runs)
    else:
        say(session.terminal.out, "There is no such run." if is_filtered else "There is no run yet.")


async def cancel(
    session: Session,
    *,
    run_id: RunIdArgument,
) -> None:
    """Cancel a run: requests in flight are aborted, recorded answers are kept."""
    run = await session.client.cancel_run(run_id)
    sentence = f"Run {run_id} was cancelled; recorded answers are kept."
    session.terminal.report({"run": document(run)}, sentence)


async def retry(
    session: Session,
    *,
    run_id: RunIdArgument,
) -> None:
    """Run a failed or cancelled run again, for the missing answers only."""
    run = await session.client.retry_run(run_id)
    again = f"Run {run_id} is pending again, for the missing answers only{words.priority_note(run)}"
    session.terminal.report({"run": document(run)}, f"{again}: `{program_name()} watch {run_id}`.")


async def delete(
    session: Session,
    *,
    run_id: RunIdArgument,
) -> None:
    """Delete a run that is over, with its answers; comparisons and leaderboards lose it as well."""
    await session.client.delete_run(run_id)
    session.terminal.report({"run_id": run_id}, f"Run {run_id} is deleted, with its answers.")


def runs_group() -> typer.Typer:
    return command_group({"delete": delete}, runs)


def print_runs(console: Console, found: scheduler_service_pb2.ListRunsResponse) -> None:
    """Two lines per run, because its id takes a whole line."""
    model = Column("model, run", min_width=RUN_ID_WIDTH)
    columns = (model, *texts("over, project", "created (UTC)", "state, took"))
    console.print(table(console, columns, map(_cells, found.runs)))
    if found.next_page_token:
        more = f"{found.total} in all; the next page: --page {found.next_page_token}"
        say(console, more, style="dim")


def _cells(run: run_pb2.Run) -> tuple[Cell, ...]:
    took = words.elapsed_seconds(run)
    state = Text(words.state_word(run.state), words.STATE_STYLES.get(run.state, ""))
    return (
        two_lines(run.order.model, run.run_id),
        two_lines(words.subject(run), str(run.order.project_id)),
        date_and_time(run.created_at),
        two_lines(state, words.duration(took) if took else ""),
    )
