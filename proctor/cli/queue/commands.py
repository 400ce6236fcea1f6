"""Commands about the queue: `queue`, `limits`, `pause`, `resume`."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

import typer

from proctor.cli.gateway_address import find_gateway, program_name
from proctor.cli.options import AsJson, Gateway, RunId
from proctor.cli.parsing import PRIORITIES
from proctor.cli.queue.tables import limits_table, print_queue
from proctor.cli.render import words as run_words
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import ExitCode, Terminal, execute, tell_changed
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2

_PRIORITY_HELP = (
    "The highest priority that USER may ask for, * for everybody else; USER= takes USER off the list."
)
# What fits the contract; how large a limit may be is said by the scheduler.
_MOST = 2**31 - 1
_YEAR_SECONDS = 365 * 24 * 3600.0
# Limits by the names of their options.
_LIMITS = {
    "max-running": "max_running_runs",
    "max-pending": "max_pending_runs_per_user",
    "max-requests": "max_requests_per_minute",
    "time-limit": "run_time_limit",
    "min-run-time": "min_run_time",
    "priority": "priorities",
}
_RESET_HELP = f"Limit that goes back to its setting: {', '.join(_LIMITS)}."


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
    max_running: Annotated[int | None, typer.Option(min=1, max=_MOST, help="Runs running at a time.")] = None,
    max_pending: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Waiting and paused runs of a user.")
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Requests of a user in a minute.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0, max=_YEAR_SECONDS, help="Seconds that a run may take.")
    ] = None,
    min_run_time: Annotated[
        float | None,
        typer.Option(
            min=0, max=_YEAR_SECONDS, help="Seconds that a run keeps its place before others may take it."
        ),
    ] = None,
    priority: Annotated[list[str] | None, typer.Option(metavar="USER=NAME", help=_PRIORITY_HELP)] = None,
    reset: Annotated[list[str] | None, typer.Option(metavar="NAME", help=_RESET_HELP)] = None,
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
        )
        if time_limit is not None:
            changes.run_time_limit.FromTimedelta(timedelta(seconds=time_limit))
        if min_run_time is not None:
            changes.min_run_time.FromTimedelta(timedelta(seconds=min_run_time))
        back = [_limit_name(each) for each in reset or ()]
        async with ProctorClient(find_gateway(gateway)) as client:
            shown = await client.queue.limits()
            if priority:
                changes.priorities.extend(_changed_priorities(shown.priorities, priority))
            if changes.ListFields() or back:
                shown = await client.queue.change_limits(changes, back)
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
        turn = f"waits for its turn again{run_words.urgency(run)}"
        return tell_changed(terminal, run, f"Run {run_id} {turn}: `{program_name()} watch {run_id}`.")

    execute(terminal, work)


def _limit_name(text: str) -> str:
    if text not in _LIMITS:
        raise Refused(f"--reset {text}: it must be one of {', '.join(_LIMITS)}.", "INVALID_PARAMETER")
    return _LIMITS[text]


def _changed_priorities(
    present: Iterable[queue_pb2.UserPriority], changes: Iterable[str]
) -> list[queue_pb2.UserPriority]:
    """The whole list, which is what can be changed; an empty one would change nothing."""
    wanted = {each.user: each.highest for each in present}
    for text in changes:
        user, _, name = text.rpartition("=")
        if not user or (name and name not in PRIORITIES):
            known = ", ".join(PRIORITIES)
            sentence = f"--priority {text}: write USER=NAME, with one of {known}, or USER= to take one off."
            raise Refused(sentence, "INVALID_PARAMETER")
        wanted.pop(user, None)
        if name:
            wanted[user] = PRIORITIES[name]
    wanted = wanted or {"*": PRIORITIES["high"]}
    return [queue_pb2.UserPriority(user=user, highest=highest) for user, highest in wanted.items()]
