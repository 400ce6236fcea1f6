"""`proctor nats-users`: who may do what in a NATS that is not the local stack's."""

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal, complain_of
from proctor.cli.render.words import JsonValue
from proctor.stack.errors import PoolsFileUnusable
from proctor.stack.servers.nats_rights import authorization_block, password_variable, rights_of
from proctor.values import messaging
from proctor.values.providers.errors import InvalidPools
from proctor.values.providers.pools_file import parse_pools


def nats_users(
    pools_file: Annotated[Path, typer.Argument(help="The pools file of the installation.")],
    as_json: AsJson = False,
) -> None:
    """Print the users of NATS with their rights, as a block of the configuration of nats-server."""
    terminal = Terminal(as_json)
    try:
        pools = [pool.name for pool in parse_pools(pools_file.read_text(encoding="utf-8")).pools]
    except (OSError, UnicodeDecodeError, InvalidPools) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise typer.Exit(complain_of(terminal, PoolsFileUnusable(file=pools_file, reason=reason))) from None
    if as_json:
        variables: dict[str, JsonValue] = {user: password_variable(user) for user in rights_of(pools)}
        workers: dict[str, JsonValue] = {pool: messaging.worker_user(pool) for pool in pools}
        terminal.emit({"password_variables": variables, "worker_users": workers})
    else:
        typer.echo(authorization_block(pools), nl=False)
