"""`proctor datasets`: data sets of one's own: upload, list, show, delete."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.datasets.tables import datasets_table, print_dataset, print_rows
from proctor.cli.datasets.upload import LocalFile, tell_faults, upload_file
from proctor.cli.gateway_address import find_gateway, program_name
from proctor.cli.options import AsJson, Gateway, Page, User
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import EXIT_CODES_HELP, ExitCode, Terminal, execute, say
from proctor.client.errors import NotFound, Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import dataset_service_pb2 as dataset_pb2

_FORMATS: Mapping[str, dataset_pb2.DatasetFormat.ValueType] = {
    "": dataset_pb2.DATASET_FORMAT_UNSPECIFIED,
    "jsonl": dataset_pb2.DATASET_FORMAT_JSONL,
    "csv": dataset_pb2.DATASET_FORMAT_CSV,
    "parquet": dataset_pb2.DATASET_FORMAT_PARQUET,
}

DatasetId = Annotated[
    str, typer.Argument(metavar="DATASET_ID", help="Id of the data set (see `proctor datasets list`).")
]


def datasets(context: typer.Context, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """List the uploaded data sets; or upload, show and delete them."""
    if not context.invoked_subcommand:
        list_datasets(gateway=gateway, as_json=as_json)


def upload(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL, CSV or Parquet; gzip and zstd too.")],
    name: Annotated[str, typer.Option(help="Its name; else that of the file.")] = "",
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="jsonl, csv or parquet; else told from the name.")
    ] = "",
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Upload a file of prompts. Every faulty line is named, and nothing of a refused file is kept."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        if form not in _FORMATS:
            raise Refused(f"--format {form}: it must be jsonl, csv or parquet.", "INVALID_PARAMETER")
        shown_name = name or file.name
        async with ProctorClient(find_gateway(gateway), user=user) as client:
            uploaded = await upload_file(client, LocalFile(file, shown_name, _FORMATS[form]), terminal.err)
        if not uploaded.HasField("dataset"):
            tell_faults(terminal, shown_name, uploaded)
            return ExitCode.REFUSED
        if as_json:
            terminal.emit(document(uploaded))
        else:
            _tell_uploaded(terminal.out, uploaded.dataset)
        return ExitCode.OK

    execute(terminal, work)


def list_datasets(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Data sets on a page.")] = 20,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """List the uploaded data sets, newest first."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            found = await client.datasets.list_page(limit, page)
        if as_json:
            terminal.emit(document(found))
            return ExitCode.OK
        if not found.datasets and not page:
            say(terminal.out, f"There is no data set yet: `{program_name()} datasets upload FILE` makes one.")
            return ExitCode.OK
        terminal.out.print(datasets_table(terminal.out, found.datasets))
        if found.next_page_token:
            more = f"{len(found.datasets)} of {found.total:,}. The next page: --page {found.next_page_token}"
            say(terminal.out, more, style="dim")
        return ExitCode.OK

    execute(terminal, work)


def show(
    dataset_id: DatasetId,
    row: Annotated[int, typer.Option(min=0, help="First row to show, from 0.")] = 0,
    rows: Annotated[int, typer.Option(min=1, max=100, help="Rows to show.")] = 3,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show a data set and rows of it as a model would be asked."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            dataset = await client.datasets.get(dataset_id)
            shown = await client.datasets.preview(dataset_id, row, rows)
        if not shown:
            raise NotFound(f"There is no row {row}: rows are 0 to {dataset.row_count - 1}.", "ROW_NOT_FOUND")
        if as_json:
            terminal.emit({"dataset": document(dataset), "rows": [document(each) for each in shown]})
        else:
            print_dataset(terminal.out, dataset)
            print_rows(terminal.out, shown)
        return ExitCode.OK

    execute(terminal, work)


def delete(dataset_id: DatasetId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Delete a data set that no run uses."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            await client.datasets.delete(dataset_id)
        if as_json:
            terminal.emit({"dataset_id": dataset_id})
        else:
            say(terminal.out, f"{dataset_id} is gone.")
        return ExitCode.OK

    execute(terminal, work)


def datasets_group() -> typer.Typer:
    group = typer.Typer(invoke_without_command=True, epilog=EXIT_CODES_HELP, callback=datasets)
    for command in (upload, show, delete):
        group.command(epilog=EXIT_CODES_HELP)(command)
    group.command("list", epilog=EXIT_CODES_HELP)(list_datasets)
    return group


def _tell_uploaded(console: Console, dataset: dataset_pb2.Dataset) -> None:
    print_dataset(console, dataset)
    say(console, f"  {program_name()} datasets show {dataset.dataset_id}", style="dim")
    say(console, f"  {program_name()} run --dataset {dataset.dataset_id} --model …", style="dim")
