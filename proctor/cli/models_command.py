"""What can be examined: `proctor models`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from proctor.cli.command_options import AsJson, Gateway
from proctor.cli.compact_table import compact_table
from proctor.cli.exit_codes import ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.terminal import Terminal, execute
from proctor.client import ProctorClient
from proctor.v1 import model_pb2


def models(
    provider: Annotated[str, typer.Option(help="Only this provider.")] = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """List the models that pools and live workers serve."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            found = await client.list_models(provider)
        if as_json:
            terminal.emit({"models": [document(model) for model in found]})
        else:
            terminal.out.print(models_table(terminal.out, found))
        return ExitCode.OK

    execute(terminal, work)


def models_table(console: Console, found: list[model_pb2.ModelInfo]) -> Table:
    table = compact_table(console)
    for column in ("model", "pool", "loaded", "context"):
        table.add_column(column, overflow="fold")
    for model in found:
        context = str(model.context_tokens) if model.HasField("context_tokens") else ""
        table.add_row(model.model, model.pool, "yes" if model.is_loaded else "", context)
    return table
