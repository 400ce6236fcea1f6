"""`proctor datasets`: upload, list, show and delete data sets."""

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.datasets.tables import print_dataset, print_datasets, print_rows
from proctor.cli.datasets.upload import LocalFile, report_faults, upload_file
from proctor.cli.gateway import program_name, with_gateway
from proctor.cli.options import AsJson, Gateway, Page, User
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import Terminal, command_group, say
from proctor.cli.render.words import enum_value
from proctor.client.errors import NotFound
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.v1 import dataset_service_pb2 as dataset_pb2

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
    name: Annotated[str, typer.Option(help="Name of the data set; default: that of the file.")] = "",
    form: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="jsonl, csv or parquet; default: by the file's name."),
    ] = "",
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Upload a file of prompts. Every faulty line is reported, and nothing of a rejected file is stored."""

    async def work(client: ProctorClient, terminal: Terminal) -> ExitCode:
        chosen = enum_value(dataset_pb2.DatasetFormat, form, "--format")
        local = LocalFile(file, name or file.name, chosen)
        uploaded = await upload_file(client, local, terminal.err)
        if not uploaded.HasField("dataset"):
            report_faults(terminal, local.name, uploaded)
            return ExitCode.REFUSED
        terminal.show(uploaded, lambda console, shown: print_dataset(console, shown.dataset))
        if not terminal.is_json:
            dataset_id = uploaded.dataset.dataset_id
            say(terminal.out, f"  {program_name()} datasets show {dataset_id}", style="dim")
            say(terminal.out, f"  {program_name()} run --dataset {dataset_id} --model …", style="dim")
        return ExitCode.OK

    with_gateway(work, gateway, as_json, user)


def list_datasets(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Data sets per page.")] = 20,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """List the uploaded data sets, newest first."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        found = await client.datasets.list_page(limit, page)
        if found.datasets or page or terminal.is_json:
            terminal.show(found, print_datasets)
        else:
            say(terminal.out, f"There is no data set yet: `{program_name()} datasets upload FILE` makes one.")

    with_gateway(work, gateway, as_json)


def show(
    dataset_id: DatasetId,
    row: Annotated[int, typer.Option(min=0, help="First row to show, from 0.")] = 0,
    rows: Annotated[int, typer.Option(min=1, max=100, help="Rows to show.")] = 3,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show a data set, and some of its rows as a model would be asked."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        dataset = await client.datasets.get(dataset_id)
        shown = await client.datasets.preview(dataset_id, row, rows)
        if not shown:
            sentence = f"There is no row {row}: rows are 0 to {dataset.row_count - 1}."
            raise NotFound(sentence, "ROW_NOT_FOUND")
        if terminal.is_json:
            terminal.emit({"dataset": document(dataset), "rows": [document(each) for each in shown]})
        else:
            print_dataset(terminal.out, dataset)
            print_rows(terminal.out, shown)

    with_gateway(work, gateway, as_json)


def delete(dataset_id: DatasetId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Delete a data set that no run uses."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        await client.datasets.delete(dataset_id)
        terminal.report({"dataset_id": dataset_id}, f"{dataset_id} is deleted.")

    with_gateway(work, gateway, as_json)


def datasets_group() -> typer.Typer:
    return command_group({"upload": upload, "show": show, "delete": delete, "list": list_datasets}, datasets)
