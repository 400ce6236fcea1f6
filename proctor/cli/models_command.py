"""What can be examined: `proctor models`."""

from typing import Annotated

import typer

from proctor.cli.command_options import AsJson, Gateway
from proctor.cli.exit_codes import ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.models_table import print_models
from proctor.cli.terminal import Terminal, execute
from proctor.client import ProctorClient


def models(
    provider: Annotated[str, typer.Option(help="Only this provider.")] = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """List the models that can be examined, as pools and their providers tell of them now."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            listed = await client.list_models(provider)
        if as_json:
            terminal.emit(document(listed))
        else:
            print_models(terminal.out, listed)
        return ExitCode.OK

    execute(terminal, work)
