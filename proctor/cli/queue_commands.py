"""Commands about the queue: `queue`, `limits`, `pause`, `resume`."""

from datetime import timedelta
from typing import Annotated

import typer

from proctor.cli.command_options import AsJson, Gateway, RunId
from proctor.cli.exit_codes import ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.order_options import PRIORITIES
from proctor.cli.program_name import program_name
from proctor.cli.queue_tables import limits_table, print_queue
from proctor.cli.runs_commands import tell_changed
from proctor.cli.terminal import Terminal, execute
from proctor.client import ProctorClient
from proctor.client_errors import Refused
from proctor.v1 import queue_service_pb2 as queue_pb2

_PRIORITY_HELP = "The highest priority that USER may ask for, * for everybody else; replaces the whole list."


def queue(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most waiting and paused runs.")] = 100,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show what runs, what waits, why and for how long, and the workers."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            shown = await client.queue.show(limit)
        if as_json:
            terminal.emit(document(shown))
        else:
            print_queue(terminal.out, shown)
        return ExitCode.OK

    execute(terminal, work)


def limits(
    *,
    max_running: Annotated[int | None, typer.Option(help="Runs running at a time.")] = None,
    max_pending: Annotated[int | None, typer.Option(help="Waiting runs of a user.")] = None,
    max_requests: Annotated[int | None, typer.Option(help="Requests of a user in a minute.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds that a run may take.")] = None,
    min_stay: Annotated[
        float | None, typer.Option(help="Seconds that a run keeps its place before others may take it.")
    ] = None,
    priority: Annotated[list[str] | None, typer.Option(metavar="USER=NAME", help=_PRIORITY_HELP)] = None,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show the limits of the whole system, or change those that are given: at once, without a restart."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        changes = queue_pb2.QueueLimits(
            max_running_runs=max_running,
            max_pending_runs_per_user=max_pending,
            max_requests_per_minute=max_requests,
            priorities=[_user_priority(each) for each in priority or ()],
        )
        if time_limit is not None:
            changes.run_time_limit.FromTimedelta(_time("--time-limit", time_limit))
        if min_stay is not None:
            changes.min_stay.FromTimedelta(_time("--min-stay", min_stay))
        async with ProctorClient(find_gateway(gateway)) as client:
            is_change = bool(changes.ListFields())
            shown = await (client.queue.change_limits(changes) if is_change else client.queue.limits())
        if as_json:
            terminal.emit(document(shown))
        else:
            terminal.out.print(limits_table(terminal.out, shown))
        return ExitCode.OK

    execute(terminal, work)


def pause(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Pause a run: no sample goes out, what is being asked is finished and recorded."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            run = await client.pause_run(run_id)
        return tell_changed(
            terminal, run, f"Run {run_id} is paused; `{program_name()} resume {run_id}` lets it go on."
        )

    execute(terminal, work)


def resume(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Let a paused run wait for its turn again; it goes on where it stopped."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            run = await client.resume_run(run_id)
        return tell_changed(
            terminal, run, f"Run {run_id} waits for its turn again: `{program_name()} watch {run_id}`."
        )

    execute(terminal, work)


def _time(option: str, seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (ValueError, OverflowError) as error:
        raise Refused(f"{option} {seconds}: it must be a number of seconds.", "INVALID_PARAMETER") from error


def _user_priority(text: str) -> queue_pb2.UserPriority:
    user, _, name = text.rpartition("=")
    if not user or name not in PRIORITIES:
        known = ", ".join(PRIORITIES)
        raise Refused(f"--priority {text}: write USER=NAME, with one of {known}.", "INVALID_PARAMETER")
    return queue_pb2.UserPriority(user=user, highest=PRIORITIES[name])
