"""`proctor changes`: who changed what."""

from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.options import PageOption
from proctor.cli.render.table import Column, date_and_time, table, texts
from proctor.cli.render.terminal import say
from proctor.v1 import change_service_pb2


async def changes(
    session: Session,
    *,
    object_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="Only this run, data set, file or suite@version.")
    ] = "",
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Changes per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show who cancelled, paused, retried or deleted something, and who changed the limits."""
    request = change_service_pb2.ListChangesRequest(page_size=page_size, page_token=page, object_id=object_id)
    session.terminal.show(await session.client.changes.ListChanges(request), print_changes)


def print_changes(console: Console, found: change_service_pb2.ListChangesResponse) -> None:
    if not found.changes:
        say(console, "There is no such change.")
        return
    columns = (Column("what", "whole"), *texts("who", "when (UTC)"))
    rows = (
        (
            " ".join(part for part in (each.action, each.kind, each.object_id, each.detail) if part),
            each.user,
            date_and_time(each.changed_at),
        )
        for each in found.changes
    )
    console.print(table(console, columns, rows, "changes"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")
