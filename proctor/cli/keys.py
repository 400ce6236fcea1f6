"""`proctor keys`: API keys of users, for operators."""

from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import PageOption
from proctor.cli.render.table import Column, date_and_time, table, texts
from proctor.cli.render.terminal import say
from proctor.cli.render.words import option_value
from proctor.v1 import key_pb2, key_service_pb2
from proctor.wire.enums import shown_word, words_of

MadeKey = key_service_pb2.CreateKeyResponse | key_service_pb2.RotateKeyResponse
Days = Annotated[int, typer.Option(min=1, max=1825, help="Days for which the key is taken.")]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="As `proctor keys list` shows it.")]


async def create_key(
    session: Session,
    *,
    of_user: Annotated[str, typer.Argument(metavar="USER", help="The user whose calls it proves.")],
    role: Annotated[str, typer.Option(help=f"{', '.join(words_of(key_pb2.Role))}.")] = "runner",
    days: Days = 90,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Make an API key. It is shown this once."""
    request = key_service_pb2.CreateKeyRequest(
        user=of_user, role=option_value(key_pb2.Role, role, "--role"), days=days, note=note
    )
    session.terminal.show(await session.client.keys.CreateKey(request), print_made)


async def list_keys(
    session: Session,
    *,
    of_user: Annotated[str, typer.Argument(metavar="[USER]", help="Only keys of this user.")] = "",
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Keys per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show API keys, latest first, also those that ended."""
    request = key_service_pb2.ListKeysRequest(page_size=page_size, page_token=page, user=of_user)
    session.terminal.show(await session.client.keys.ListKeys(request), print_keys)


async def rotate_key(
    session: Session,
    *,
    key_id: KeyId,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=720, help="Hours for which the replaced key is still taken.")
    ] = 24,
    days: Days = 90,
) -> None:
    """Replace an API key by a new one of the same user and role."""
    request = key_service_pb2.RotateKeyRequest(key_id=key_id, overlap_hours=overlap_hours, days=days)
    session.terminal.show(await session.client.keys.RotateKey(request), print_made)


async def revoke_key(session: Session, *, key_id: KeyId) -> None:
    """Revoke an API key: it is refused within a second, and what is open with it ends."""
    request = key_service_pb2.RevokeKeyRequest(key_id=key_id)
    session.terminal.show(await session.client.keys.RevokeKey(request), _print_revoked)


def keys_group() -> typer.Typer:
    return command_group(
        {"create": create_key, "list": list_keys, "rotate": rotate_key, "revoke": revoke_key},
        about="API keys of users, for operators.",
    )


def print_made(
    console: Console, made: key_service_pb2.CreateKeyResponse | key_service_pb2.RotateKeyResponse
) -> None:
    key = made.key
    say(
        console,
        f"A {shown_word(key_pb2.Role, key.role)}'s key of {key.user}, until {date_and_time(key.expires_at)}:",
    )
    # On one line, so that it can be copied.
    console.print(made.secret, soft_wrap=True, highlight=False)
    say(
        console,
        "It is shown this once and stored nowhere. Commands read it from PROCTOR_API_KEY.",
        style="dim",
    )


def print_keys(console: Console, found: key_service_pb2.ListKeysResponse) -> None:
    if not found.keys:
        say(console, "There is no such key.")
        return
    columns = (*texts("id"), Column("user, note", "whole"), *texts("role", "last used", "until (UTC)"))
    rows = (
        (
            key.key_id,
            ", ".join(part for part in (key.user, key.note) if part),
            shown_word(key_pb2.Role, key.role),
            date_and_time(key.last_used_at) if key.HasField("last_used_at") else "never",
            "revoked" if key.HasField("revoked_at") else date_and_time(key.expires_at),
        )
        for key in found.keys
    )
    console.print(table(console, columns, rows, "keys"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")


def _print_revoked(console: Console, revoked: key_service_pb2.RevokeKeyResponse) -> None:
    say(console, f"{revoked.key.prefix}… of {revoked.key.user} is refused from now on.")
