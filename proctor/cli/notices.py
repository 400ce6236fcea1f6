"""`proctor notices`: where you are told of what, and what was sent."""

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import PROJECT_METAVAR, PageOption, read_project
from proctor.cli.render.table import Column, date_and_time, table, texts
from proctor.cli.render.terminal import say
from proctor.cli.render.words import counted, option_value
from proctor.v1 import notice_service_pb2 as notice_pb2
from proctor.values.names.notices import NoticeEvent
from proctor.wire.enums import shown_word

TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET_ID", help="Id of the target (see `proctor notices list`).")
]
_EVENTS = ", ".join(event for event in NoticeEvent if event is not NoticeEvent.TEST)


async def add_target(
    session: Session,
    *,
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="webhook, slack or email.")],
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="URL, or mail address.")],
    event: Annotated[
        list[str], typer.Option("--on", metavar="EVENT", help=f"{_EVENTS}; repeat for several.")
    ],
    project: Annotated[
        int | None,
        typer.Option(
            parser=read_project,
            metavar=PROJECT_METAVAR,
            help="Of all runs of this project, by name or number; default: of your own runs.",
        ),
    ] = None,
    of_all: Annotated[bool, typer.Option("--all", help="Of all runs; for operators.")] = False,
) -> None:
    """Be told of runs by webhook, Slack or e-mail."""
    scope = "all" if of_all else "own" if project is None else "project"
    request = notice_pb2.AddNoticeTargetRequest(
        channel=option_value(notice_pb2.NoticeChannel, channel, "CHANNEL"),
        address=address,
        events=[option_value(notice_pb2.NoticeEvent, each, "--on") for each in event],
        scope=option_value(notice_pb2.NoticeScope, scope, "--all"),
        project_id=project or 0,
        request_id=str(uuid.uuid4()),
    )
    session.terminal.show(await session.client.notices.AddNoticeTarget(request), _print_added)


async def list_targets(session: Session) -> None:
    """Show where you are told of what."""
    listed = await session.client.notices.ListNoticeTargets(notice_pb2.ListNoticeTargetsRequest())
    names = await session.client.project_names(each.project_id for each in listed.targets)
    session.terminal.show(listed, partial(_print_targets, names=names))


async def test_target(session: Session, *, target: TargetArgument) -> None:
    """Send a notice to a target, on the way of all others."""
    request = notice_pb2.TestNoticeTargetRequest(target_id=target)
    sent = await session.client.notices.TestNoticeTarget(request)
    session.terminal.show(
        sent,
        lambda console, shown: say(console, f"Notice {shown.notice.notice_id} is sent within seconds."),
    )


async def delete_target(session: Session, *, target: TargetArgument) -> None:
    """Delete a target, and what was to be sent to it."""
    request = notice_pb2.DeleteNoticeTargetRequest(target_id=target)
    deleted = await session.client.notices.DeleteNoticeTarget(request)
    session.terminal.show(deleted, lambda console, _: say(console, f"Target {target} is deleted."))


async def show_sent(
    session: Session,
    *,
    target: Annotated[str, typer.Option(help="Only those to this target.")] = "",
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Notices per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show what was sent, what waits, and what was given up."""
    request = notice_pb2.ListNoticesRequest(page_size=page_size, page_token=page, target_id=target)
    session.terminal.show(await session.client.notices.ListNotices(request), print_notices)


def notices_group() -> typer.Typer:
    return command_group(
        {
            "add": add_target,
            "list": list_targets,
            "test": test_target,
            "delete": delete_target,
            "sent": show_sent,
        },
        about="Where you are told of runs: webhook, Slack, e-mail.",
    )


def _print_added(console: Console, added: notice_pb2.AddNoticeTargetResponse) -> None:
    say(console, f"Target {added.target.target_id} is added.")
    if added.secret:
        say(console, f"What goes there is signed with {added.secret}. It is not shown again.")
    say(console, f"Try it: proctor notices test {added.target.target_id}", style="dim")


def _print_targets(
    console: Console, listed: notice_pb2.ListNoticeTargetsResponse, names: Mapping[int, str]
) -> None:
    if not listed.targets:
        say(console, "You are told of nothing. Add a target: proctor notices add.")
        return
    columns = (*texts("id"), Column("address", "whole"), *texts("events", "of"))
    rows = (
        (
            each.target_id,
            each.address,
            ", ".join(shown_word(notice_pb2.NoticeEvent, event) for event in each.events),
            f"project {names.get(each.project_id, each.project_id)}"
            if each.scope == notice_pb2.NOTICE_SCOPE_PROJECT
            else shown_word(notice_pb2.NoticeScope, each.scope),
        )
        for each in listed.targets
    )
    console.print(table(console, columns, rows, "targets"))


def print_notices(console: Console, found: notice_pb2.ListNoticesResponse) -> None:
    if not found.notices:
        say(console, "There is no notice.")
        return
    columns = (Column("at (UTC)", "whole"), *texts("what", "sent"))
    rows = ((date_and_time(each.created_at), each.text, _became(each)) for each in found.notices)
    console.print(table(console, columns, rows, "notices"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")


def _became(notice: notice_pb2.Notice) -> str:
    if notice.HasField("delivered_at"):
        return "yes"
    waits = f"after {counted(notice.attempts, 'attempt')}" if notice.HasField("next_try_at") else "given up"
    return f"no, {waits}: {notice.problem}" if notice.problem else "waits"
