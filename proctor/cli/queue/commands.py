"""`proctor queue`, `limits`, `pause` and `resume`."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

import typer

from proctor.cli.gateway import program_name, with_gateway
from proctor.cli.options import AsJson, Gateway, RunId
from proctor.cli.queue.tables import print_limits, print_queue
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import Terminal
from proctor.cli.render.words import enum_value, enum_words, priority_note
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2

_PRIORITY_HELP = "The highest priority of USER, or of all others for *; USER= removes USER from the list."
# The widest range of the contract; the scheduler checks the limit itself.
_INT32_MAX = 2**31 - 1
_YEAR_SECONDS = 365 * 24 * 3600.0
# Fields of QueueLimits by the names of their options.
_LIMITS = {
    "max-running": "max_running_runs",
    "max-pending": "max_pending_runs_per_user",
    "max-requests": "max_requests_per_minute",
    "time-limit": "run_time_limit",
    "min-run-time": "min_run_time",
    "priority": "priorities",
}


def queue(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most waiting and paused runs.")] = 100,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show the running runs, the waiting ones with reason and expected start, and the workers."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        terminal.show(await client.queue.show(limit), print_queue)

    with_gateway(work, gateway, as_json)


def limits(
    *,
    max_running: Annotated[
        int | None, typer.Option(min=1, max=_INT32_MAX, help="Runs that execute at a time.")
    ] = None,
    max_pending: Annotated[
        int | None, typer.Option(min=1, max=_INT32_MAX, help="Waiting and paused runs of a user.")
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, max=_INT32_MAX, help="Requests of a user per minute.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0, max=_YEAR_SECONDS, help="Seconds that a run may take.")
    ] = None,
    min_run_time: Annotated[
        float | None,
        typer.Option(
            min=0, max=_YEAR_SECONDS, help="Seconds that a run executes before it may be preempted."
        ),
    ] = None,
    priority: Annotated[list[str] | None, typer.Option(metavar="USER=NAME", help=_PRIORITY_HELP)] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Return a limit to its setting: {', '.join(_LIMITS)}."),
    ] = None,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show the limits of the whole system, or change them at once, without a restart."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        changes = queue_pb2.QueueLimits(
            max_running_runs=max_running,
            max_pending_runs_per_user=max_pending,
            max_requests_per_minute=max_requests,
        )
        for field, seconds in ((changes.run_time_limit, time_limit), (changes.min_run_time, min_run_time)):
            if seconds is not None:
                field.FromTimedelta(timedelta(seconds=seconds))
        to_reset = [_limit_field(each) for each in reset or ()]
        shown = await client.queue.limits()
        if priority:
            changes.priorities.extend(_changed_priorities(shown.priorities, priority))
        if changes.ListFields() or to_reset:
            shown = await client.queue.change_limits(changes, to_reset)
        terminal.show(shown, print_limits)

    with_gateway(work, gateway, as_json)


def pause(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Pause a run: no further sample is sent; samples in flight are finished and recorded."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        run = await client.pause_run(run_id)
        sentence = f"Run {run_id} is paused; `{program_name()} resume {run_id}` continues it."
        terminal.report({"run": document(run)}, sentence)

    with_gateway(work, gateway, as_json)


def resume(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Put a paused run back into the queue; it continues where it stopped."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        run = await client.resume_run(run_id)
        sentence = (
            f"Run {run_id} is in the queue again{priority_note(run)}: `{program_name()} watch {run_id}`."
        )
        terminal.report({"run": document(run)}, sentence)

    with_gateway(work, gateway, as_json)


def _limit_field(text: str) -> str:
    if text not in _LIMITS:
        raise Refused(f"--reset {text}: it must be one of {', '.join(_LIMITS)}.", "INVALID_PARAMETER")
    return _LIMITS[text]


def _changed_priorities(
    present: Iterable[queue_pb2.UserPriority], changes: Iterable[str]
) -> list[queue_pb2.UserPriority]:
    """The whole list, because only the whole list can be changed, and an empty one changes nothing."""
    highest_of = {each.user: each.highest for each in present}
    for text in changes:
        user, _, name = text.rpartition("=")
        known = enum_words(run_pb2.Priority)
        if not user or (name and name not in known):
            form = f"write USER=NAME, with one of {', '.join(known)}, or USER= to remove USER"
            raise Refused(f"--priority {text}: {form}.", "INVALID_PARAMETER")
        highest_of.pop(user, None)
        if name:
            highest_of[user] = enum_value(run_pb2.Priority, name, "--priority")
    highest_of = highest_of or {"*": run_pb2.PRIORITY_HIGH}
    return [queue_pb2.UserPriority(user=user, highest=highest) for user, highest in highest_of.items()]
