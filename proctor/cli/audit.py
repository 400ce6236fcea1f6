"""`proctor audit`: who did what, for operators."""

import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToDict
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.options import PageOption
from proctor.cli.render.table import Column, date_and_time, table, texts
from proctor.cli.render.terminal import say, write_verbatim
from proctor.cli.render.words import option_value
from proctor.client.errors import Refused
from proctor.v1 import audit_pb2, audit_service_pb2
from proctor.values.plain import with_line_feeds_only
from proctor.wire.enums import shown_word, words_of

# The most that a page may have.
_ALL_PAGE_SIZE = 500


async def audit(
    session: Session,
    *,
    object_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="Only what was done to this run, data set, file, key …")
    ] = "",
    by: Annotated[str, typer.Option(metavar="USER", help="Only what this user did.")] = "",
    action: Annotated[str, typer.Option(help="Only this verb, such as export or 'sign in'.")] = "",
    outcome: Annotated[str, typer.Option(help=f"{' | '.join(words_of(audit_pb2.AuditOutcome))}.")] = "",
    since: Annotated[str, typer.Option(help="A time in UTC, as 2026-11-28 or 2026-11-28T09:30.")] = "",
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print all of them, as JSON lines.")] = False,
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Records per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show who changed, ordered, uploaded, exported or read what, and who signed in or was refused."""
    request = audit_service_pb2.ListAuditRecordsRequest(
        page_size=_ALL_PAGE_SIZE if jsonl else page_size,
        page_token=page,
        user=by,
        action=action,
        object_id=object_id,
    )
    if outcome:
        request.outcome = option_value(audit_pb2.AuditOutcome, outcome, "--outcome")
    if since:
        request.since.FromDatetime(_moment(since))
    if jsonl:
        await _print_lines(session, request)
        return
    session.terminal.show(await session.client.audit.ListAuditRecords(request), print_records)


async def _print_lines(session: Session, request: audit_service_pb2.ListAuditRecordsRequest) -> None:
    is_last = False
    while not is_last:
        found = await session.client.audit.ListAuditRecords(request)
        for record in found.records:
            line = MessageToDict(record, preserving_proto_field_name=True)
            line["outcome"] = shown_word(audit_pb2.AuditOutcome, record.outcome)
            text = json.dumps(line, ensure_ascii=False)
            write_verbatim(session.terminal.out, with_line_feeds_only(text.encode()).decode())
        request.page_token, is_last = found.next_page_token, not found.next_page_token


def _moment(text: str) -> datetime:
    """A time without a zone is in UTC."""
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    # A zone may lead beyond the years that there are.
    except (ValueError, OverflowError) as error:
        raise Refused(f"--since {text}: write a time as 2026-11-28 or 2026-11-28T09:30.") from error


def print_records(console: Console, found: audit_service_pb2.ListAuditRecordsResponse) -> None:
    if not found.records:
        say(console, "There is no such record.")
        return
    columns = (Column("what", "whole"), *texts("who", "from", "outcome", "when (UTC)"))
    rows = (
        (
            " ".join(part for part in (each.action, each.kind, each.object_id, each.detail) if part),
            each.user or "unknown",
            each.address,
            shown_word(audit_pb2.AuditOutcome, each.outcome) + (f" ×{each.times}" if each.times > 1 else ""),
            date_and_time(each.recorded_at),
        )
        for each in found.records
    )
    console.print(table(console, columns, rows, "records"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")
