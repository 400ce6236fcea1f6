"""What can be examined by what: `proctor suites` and `proctor models`."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from proctor.cli.command_options import AsJson, Gateway
from proctor.cli.exit_codes import ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.terminal import Terminal, execute
from proctor.client import ProctorClient
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2


def suites(gateway: Gateway = None, as_json: AsJson = False) -> None:
    """List the registered suites and their tasks."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            found = await client.list_suites()
        if as_json:
            terminal.emit({"suites": [document(suite) for suite in found]})
        else:
            terminal.out.print(_suites_table(found))
        return ExitCode.OK

    execute(terminal, work)


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
            terminal.out.print(_models_table(found))
        return ExitCode.OK

    execute(terminal, work)


def _suites_table(found: list[scheduler_pb2.SuiteInfo]) -> Table:
    table = Table()
    for column in ("suite", "tasks", "what it is"):
        table.add_column(column)
    for suite in found:
        tasks = ", ".join(task.task for task in suite.tasks)
        about = Text(f"cannot be run: {suite.problem}", "red") if suite.problem else Text(suite.description)
        table.add_row(suite.suite, tasks, about)
    return table


def _models_table(found: list[scheduler_pb2.ModelInfo]) -> Table:
    table = Table()
    for column in ("model", "pool", "loaded", "context"):
        table.add_column(column)
    for model in found:
        context = str(model.context_tokens) if model.HasField("context_tokens") else ""
        table.add_row(model.model, model.pool, "yes" if model.is_loaded else "", context)
    return table
