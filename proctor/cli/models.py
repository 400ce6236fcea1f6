"""Models for people: a table per pool, and below them the pools that do not tell theirs.
What can be examined: `proctor models`.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway
from proctor.cli.render.documents import document
from proctor.cli.render.table import compact_table
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import model_pb2, scheduler_service_pb2

_COLUMNS = ("context", "size", "memory", "quantisation", "loaded")


def print_models(console: Console, listed: scheduler_service_pb2.ListModelsResponse) -> None:
    """What a pool's models can is told above them: it is the same for all that an engine serves."""
    groups = sorted(listed.models, key=_group)
    for title, models in groupby(groups, key=_group):
        console.print(_table(console, title, models))
    for source in listed.sources:
        if source.problem:
            say(console, f"pool {source.pool} ({source.provider}): {source.problem}", style="yellow")


def _group(model: model_pb2.ModelInfo) -> str:
    provider = model.model.partition("/")[0]
    can = ", ".join(field.name for field, _ in model.capabilities.ListFields())
    return f"{provider} · pool {model.pool}" + (f" · can {can}" if can else "")


def _table(console: Console, title: str, models: Iterable[model_pb2.ModelInfo]) -> Table:
    table = compact_table(console, title)
    table.add_column("model", overflow="fold")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("quantisation", "loaded") else "right")
    for model in models:
        table.add_row(_name(model), *_cells(model))
    return table


def _name(model: model_pb2.ModelInfo) -> Text:
    """As an order names it, and what is wrong with it."""
    problem = f"\n{model.problem}" if model.problem else ""
    return Text.assemble(model.model, (problem, "red"))


def _cells(model: model_pb2.ModelInfo) -> tuple[str, ...]:
    return (
        f"{model.context_tokens:,}" if model.HasField("context_tokens") else "",
        decimal(model.size_bytes) if model.HasField("size_bytes") else "",
        decimal(model.memory_bytes) if model.HasField("memory_bytes") else "",
        model.quantization,
        "yes" if model.is_loaded else "",
    )


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
