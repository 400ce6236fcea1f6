"""`proctor schedule`: orders that are repeated at the times of a cron expression."""

import uuid
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.datasets.upload import dataset_id_of
from proctor.cli.gateway import Session, command_group, print_page
from proctor.cli.options import PageOption, ProjectFilter, points
from proctor.cli.render.table import Cell, Column, date_and_time, table, texts
from proctor.cli.render.terminal import say
from proctor.cli.runs.order import OrderOptions, labels_of, order_of
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode
from proctor.v1 import comparison_pb2
from proctor.v1 import schedule_service_pb2 as schedule_pb2
from proctor.values.comparison import points_text
from proctor.wire.enums import word_of

# The base of the run before.
_PREVIOUS = "previous"
ScheduleArgument = Annotated[
    str, typer.Argument(metavar="SCHEDULE_ID", help="Id of the schedule (see `proctor schedule list`).")
]


async def add_schedule(
    session: Session,
    options: OrderOptions,
    *,
    cron: Annotated[str, typer.Option(help='minute hour day month weekday, such as "0 3 * * MON".')],
    time_zone: Annotated[
        str, typer.Option(metavar="ZONE", help="In which they are meant, such as Europe/Vienna.")
    ] = "UTC",
    gate: Annotated[
        str,
        typer.Option(
            metavar="previous|RUN_ID",
            help="Gate each run against the one before, or against this run; notices tell of drops.",
        ),
    ] = "",
    gate_margin: Annotated[
        str, typer.Option(metavar="POINTS", help="With --gate: the accepted drop. Default: 1pt.")
    ] = "",
    gate_alpha: Annotated[
        float | None,
        typer.Option(help="With --gate: chance of a wrong decision in any task. Default: 0.05."),
    ] = None,
) -> ExitCode:
    """Repeat an order, with the options of `proctor run` and a --name. Its runs have the priority low."""
    if not options.name:
        raise Refused("Name the schedule: --name. Its runs have the same name.")
    if options.priority:
        raise Refused("Runs of a schedule have the priority low: leave out --priority.")
    gated = _gate(gate, gate_margin, gate_alpha)
    order = order_of(options)
    if order.dataset_id:
        dataset_id = await dataset_id_of(session.client, order.dataset_id, session.terminal, order.project_id)
        if dataset_id is None:
            return ExitCode.REFUSED
        order.dataset_id = dataset_id
    request = schedule_pb2.AddScheduleRequest(
        cron=cron,
        time_zone=time_zone,
        order=order,
        labels=labels_of(options),
        request_id=str(uuid.uuid4()),
        gate=gated,
    )
    added = await session.client.schedules.AddSchedule(request)
    session.terminal.show(added, _print_added)
    print_page(session, f"schedules/{added.schedule.schedule_id}")
    return ExitCode.OK


async def list_schedules(
    session: Session,
    *,
    of_user: Annotated[str, typer.Option(metavar="USER", help="Only those of this user.")] = "",
    project: ProjectFilter = None,
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Schedules per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show schedules, newest first."""
    request = schedule_pb2.ListSchedulesRequest(
        page_size=page_size, page_token=page, user=of_user, project_id=project
    )
    session.terminal.show(await session.client.schedules.ListSchedules(request), _print_schedules)


async def show_schedule(session: Session, *, schedule: ScheduleArgument) -> None:
    """Show a schedule with the runs of its latest times."""
    request = schedule_pb2.GetScheduleRequest(schedule_id=schedule)
    session.terminal.show(await session.client.schedules.GetSchedule(request), _print_schedule)


async def pause_schedule(session: Session, *, schedule: ScheduleArgument) -> None:
    """Pause a schedule. Times until it is resumed are not made up for."""
    request = schedule_pb2.PauseScheduleRequest(schedule_id=schedule)
    paused = await session.client.schedules.PauseSchedule(request)
    session.terminal.show(paused, lambda console, _: say(console, f"Schedule {schedule} is paused."))


async def resume_schedule(session: Session, *, schedule: ScheduleArgument) -> None:
    """Let a paused schedule go on from its next time."""
    request = schedule_pb2.ResumeScheduleRequest(schedule_id=schedule)
    resumed = await session.client.schedules.ResumeSchedule(request)
    session.terminal.show(resumed, lambda console, shown: say(console, _next_sentence(shown.schedule)))


async def delete_schedule(session: Session, *, schedule: ScheduleArgument) -> None:
    """Delete a schedule. Its runs stay."""
    request = schedule_pb2.DeleteScheduleRequest(schedule_id=schedule)
    deleted = await session.client.schedules.DeleteSchedule(request)
    session.terminal.show(deleted, lambda console, _: say(console, f"Schedule {schedule} is deleted."))


def schedule_group() -> typer.Typer:
    return command_group(
        {
            "add": add_schedule,
            "list": list_schedules,
            "show": show_schedule,
            "pause": pause_schedule,
            "resume": resume_schedule,
            "delete": delete_schedule,
        },
        about="Orders that are repeated at the times of a cron expression.",
    )


def _gate(base: str, margin: str, alpha: float | None) -> schedule_pb2.ScheduleGate | None:
    if not base:
        for name, is_given in (("--gate-margin", margin), ("--gate-alpha", alpha is not None)):
            if is_given:
                raise Refused(f"{name} is for --gate only: add that, or leave it out.")
        return None
    return schedule_pb2.ScheduleGate(
        base_run_id="" if base == _PREVIOUS else base,
        margin_points=points("--gate-margin", margin) if margin else None,
        alpha=alpha,
    )


def _print_added(console: Console, added: schedule_pb2.AddScheduleResponse) -> None:
    schedule = added.schedule
    say(console, f"Schedule {schedule.labels.name} has the id {schedule.schedule_id}.")
    say(console, _next_sentence(schedule))


def _print_schedules(console: Console, found: schedule_pb2.ListSchedulesResponse) -> None:
    if not found.schedules:
        say(console, "There is no schedule.")
        return
    columns = (*texts("id"), Column("name", "whole"), *texts("times"), Column("next (UTC)", "whole"))
    rows = (
        (each.schedule_id, each.labels.name, f"{each.cron} {each.time_zone}", _next(each))
        for each in found.schedules
    )
    console.print(table(console, columns, rows, "schedules"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")


def _print_schedule(console: Console, found: schedule_pb2.GetScheduleResponse) -> None:
    schedule, order = found.schedule, found.schedule.order
    over = order.suite or order.dataset_id or f"the answers of {order.judge.run_id}"
    say(console, f"{schedule.labels.name}: {order.model} on {over}, for {schedule.user}.")
    say(console, f"Times: {schedule.cron} ({schedule.time_zone}). {_next_sentence(schedule)}")
    if schedule.HasField("gate"):
        say(console, _gate_sentence(schedule.gate))
    if schedule.problem:
        say(console, f"It waits: {schedule.problem}")
    if not found.firings:
        return
    gated = [Column("gate")] if schedule.HasField("gate") else []
    columns = (*texts("due (UTC)"), Column("run", "whole"), *gated)
    # Without a gate its words are the empty text of no column.
    rows = ([*_firing_cells(each)][: len(columns)] for each in found.firings)
    console.print(table(console, columns, rows, "firings"))


def _firing_cells(firing: schedule_pb2.ScheduleFiring) -> Iterator[Cell]:
    yield date_and_time(firing.due_at)
    yield firing.problem or ", ".join(firing.run_ids)
    verdict = word_of(comparison_pb2.GateVerdict, firing.verdict) if firing.verdict else ""
    yield " ".join(each for each in (verdict, firing.gate_text) if each)


def _gate_sentence(gate: schedule_pb2.ScheduleGate) -> str:
    base = f"run {gate.base_run_id}" if gate.base_run_id else "the one before"
    return f"Each run is gated against {base}; a drop of {points_text(gate.margin_points)} is accepted."


def _next(schedule: schedule_pb2.Schedule) -> str:
    return "paused" if schedule.HasField("paused_at") else str(date_and_time(schedule.next_due_at))


def _next_sentence(schedule: schedule_pb2.Schedule) -> str:
    if schedule.HasField("paused_at"):
        return "It is paused."
    return f"Its next run is ordered at {schedule.next_due_at.ToDatetime():%Y-%m-%d %H:%M:%S} UTC."
