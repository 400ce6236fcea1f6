"""`proctor models`: the models that can be evaluated."""

from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from proctor.cli.gateway import Session
from proctor.cli.render.table import Column, numbers, table
from proctor.cli.render.terminal import say
from proctor.v1 import model_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.model_name import provider_of

_COLUMNS = (
    Column("model"),
    *numbers("context", "size", "memory"),
    Column("quantization", "whole"),
    Column("loaded", "whole"),
)


async def models(
    session: Session, *, provider: Annotated[str, typer.Option(help="Only this provider.")] = ""
) -> None:
    """List the models that can be evaluated, as their pools and providers report them now."""
    request = scheduler_pb2.ListModelsRequest(provider=provider)
    session.terminal.show(await session.client.runs.ListModels(request), print_models)


def print_models(console: Console, listed: scheduler_pb2.ListModelsResponse) -> None:
    """One table per pool with its capabilities in the title; below them the pools that did not answer."""
    for title, models_of_pool in groupby(sorted(listed.models, key=_pool_title), key=_pool_title):
        console.print(table(console, _COLUMNS, map(_cells, models_of_pool), title))
    for source in listed.sources:
        if source.problem:
            say(console, f"pool {source.pool} ({source.provider}): {source.problem}", style="yellow")


def _pool_title(model: model_pb2.ModelInfo) -> str:
    provider = provider_of(model.model)
    capabilities = ", ".join(field.name for field, _ in model.capabilities.ListFields())
    return f"{provider} · pool {model.pool}" + (f" · can {capabilities}" if capabilities else "")


def _cells(model: model_pb2.ModelInfo) -> tuple[str | Text, ...]:
    problem = f"\n{model.problem}" if model.problem else ""
    return (
        Text.assemble(model.model, (problem, "red")),
        f"{model.context_tokens:,}" if model.HasField("context_tokens") else "",
        decimal(model.size_bytes) if model.HasField("size_bytes") else "",
        decimal(model.memory_bytes) if model.HasField("memory_bytes") else "",
        model.quantization,
        "yes" if model.is_loaded else "",
    )
