"""`proctor keys`: API keys of users, for operators."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import PROJECT_METAVAR, PageOption, read_project
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
    project: Annotated[
        int,
        typer.Option(
            parser=read_project,
            metavar=PROJECT_METAVAR,
            help="Name or number of the declared project that it is bound to; default: all of the user's.",
        ),
    ] = 0,
) -> None:
    """Make an API key. It is shown this once."""
    request = key_service_pb2.CreateKeyRequest(
        user=of_user,
        role=option_value(key_pb2.Role, role, "--role"),
        days=days,
        note=note,
        project_id=project,
    )
    await _show_made(session, await session.client.keys.CreateKey(request))


async def list_keys(
    session: Session,
    *,
    of_user: Annotated[str, typer.Argument(metavar="[USER]", help="Only keys of this user.")] = "",
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Keys per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show API keys, latest first, also those that ended."""
    request = key_service_pb2.ListKeysRequest(page_size=page_size, page_token=page, user=of_user)
    found = await session.client.keys.ListKeys(request)
    names = await session.client.project_names(key.project_id for key in found.keys)
    session.terminal.show(found, partial(print_keys, names=names))


async def rotate_key(
    session: Session,
    *,
    key_id: KeyId,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=720, help="Hours for which the replaced key is still taken.")
    ] = 24,
    days: Days = 90,
) -> None:
    """Replace an API key by a new one of the same user, role and project."""
    request = key_service_pb2.RotateKeyRequest(key_id=key_id, overlap_hours=overlap_hours, days=days)
    await _show_made(session, await session.client.keys.RotateKey(request))


async def revoke_key(session: Session, *, key_id: KeyId) -> None:
    """Revoke an API key: it is refused within a second, and what is open with it ends."""
    request = key_service_pb2.RevokeKeyRequest(key_id=key_id)
    session.terminal.show(await session.client.keys.RevokeKey(request), _print_revoked)


def keys_group() -> typer.Typer:
    return command_group(
        {"create": create_key, "list": list_keys, "rotate": rotate_key, "revoke": revoke_key},
        about="API keys of users, for operators.",
    )


async def _show_made(session: Session, made: MadeKey) -> None:
    names = await session.client.project_names([made.key.project_id])
    session.terminal.show(made, partial(print_made, names=names))


def print_made(console: Console, made: MadeKey, names: Mapping[int, str]) -> None:
    """`names` are those of declared projects, by their numbers."""
    key = made.key
    bound = f" in project {names.get(key.project_id, key.project_id)} only" if key.project_id else ""
    role, until = shown_word(key_pb2.Role, key.role), date_and_time(key.expires_at)
    say(console, f"A {role}'s key of {key.user}{bound}, until {until}:")
    # On one line, so that it can be copied.
    console.print(made.secret, soft_wrap=True, highlight=False)
    say(
        console,
        "It is shown this once and stored nowhere. Commands read it from PROCTOR_API_KEY.",
        style="dim",
    )


def print_keys(console: Console, found: key_service_pb2.ListKeysResponse, names: Mapping[int, str]) -> None:
    if not found.keys:
        say(console, "There is no such key.")
        return
    columns = (
        *texts("id"),
        Column("user, note", "whole"),
        *texts("role, project", "last used", "until (UTC)"),
    )
    rows = (
        (
            key.key_id,
            ", ".join(part for part in (key.user, key.note) if part),
            ", ".join(filter(None, (shown_word(key_pb2.Role, key.role), _project(key, names)))),
            date_and_time(key.last_used_at) if key.HasField("last_used_at") else "never",
            "revoked" if key.HasField("revoked_at") else date_and_time(key.expires_at),
        )
        for key in found.keys
    )
    console.print(table(console, columns, rows, "keys"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")


def _project(key: key_pb2.ApiKey, names: Mapping[int, str]) -> str:
    return names.get(key.project_id, str(key.project_id)) if key.project_id else ""


def _print_revoked(console: Console, revoked: key_service_pb2.RevokeKeyResponse) -> None:
    say(console, f"{revoked.key.prefix}… of {revoked.key.user} is refused from now on.")
