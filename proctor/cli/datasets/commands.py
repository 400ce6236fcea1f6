"""`proctor datasets`: upload, list, show and delete data sets."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from proctor.cli.datasets.mappings import delete_mapping, list_mappings, save_mapping
from proctor.cli.datasets.preview import (
    MappingOptions,
    preview_file,
    print_preview,
)
from proctor.cli.datasets.rows import print_rows
from proctor.cli.datasets.upload import LocalFile, report_faults, upload_file
from proctor.cli.gateway import Session, command_group
from proctor.cli.options import PageOption, StorageProject
from proctor.cli.program import program_name
from proctor.cli.render.table import Cell, Column, date_and_time, numbers, table, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.words import document, option_value
from proctor.client.errors import NotFound
from proctor.exit_codes import ExitCode
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.plain import total_text
from proctor.wire.enums import word_of

DatasetIdArgument = Annotated[
    str, typer.Argument(metavar="DATASET_ID", help="Id of the data set (see `proctor datasets list`).")
]


FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="JSONL, CSV, TSV or Parquet; gzip and zstd too.")
]

# `ds_` and 32 digits: an id that is folded cannot be copied.
_ID_WIDTH = 35


async def datasets(session: Session) -> None:
    """List the uploaded data sets; or upload, show and delete them."""
    await list_datasets(session)


async def upload(
    session: Session,
    *,
    file: FileArgument,
    name: Annotated[str, typer.Option(help="Name of the data set; default: that of the file.")] = "",
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="jsonl, csv, tsv or parquet; default: by the file's name and content.",
        ),
    ] = "",
    columns: MappingOptions,
    project: StorageProject = 0,
) -> ExitCode:
    """Upload a file of prompts. Every faulty line is reported, and nothing of a refused file is stored.

    Columns with names of their own are mapped: --prompt '{{question}}' --target answer.
    """
    chosen = option_value(dataset_pb2.DatasetFormat, form, "--format")
    mapping = await columns.read(session.client, project)
    local = LocalFile(file, name or file.name, chosen, project_id=project, mapping=mapping)
    uploaded = await upload_file(session.client, local, session.terminal.err)
    if not uploaded.HasField("dataset"):
        report_faults(session.terminal, local.name, uploaded)
        return ExitCode.REFUSED
    session.terminal.show(uploaded, lambda console, shown: print_dataset(console, shown.dataset))
    if not session.terminal.is_json:
        dataset_id = uploaded.dataset.dataset_id
        say(session.terminal.out, f"  {program_name()} datasets show {dataset_id}", style="dim")
        say(session.terminal.out, f"  {program_name()} run --dataset {dataset_id} --model …", style="dim")
    return ExitCode.OK


async def preview(
    session: Session,
    *,
    file: FileArgument,
    columns: MappingOptions,
    project: StorageProject = 0,
) -> ExitCode:
    """Show the first five rows of a file as an upload would store them, and a mapping of its columns.

    Nothing is stored.
    """
    mapping = await columns.read(session.client, project)
    shown = await preview_file(session.client, file, mapping)
    session.terminal.show(shown, lambda console, each: print_preview(console, file, each))
    return ExitCode.REFUSED if shown.faults else ExitCode.OK


async def list_datasets(
    session: Session,
    *,
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Data sets per page.")] = 20,
    page: PageOption = "",
) -> None:
    """List the uploaded data sets, newest first."""
    request = dataset_pb2.ListDatasetsRequest(page_size=page_size, page_token=page)
    found = await session.client.datasets.ListDatasets(request)
    if found.datasets or page or session.terminal.is_json:
        session.terminal.show(found, print_datasets)
    else:
        say(
            session.terminal.out,
            f"There is no data set yet: `{program_name()} datasets upload FILE` makes one.",
        )


async def show(
    session: Session,
    *,
    dataset_id: DatasetIdArgument,
    row: Annotated[int, typer.Option(min=0, help="First row to show, from 0.")] = 0,
    rows: Annotated[int, typer.Option(min=1, max=100, help="Rows to show.")] = 3,
) -> None:
    """Show a data set, and some of its rows as a model would be asked."""
    datasets = session.client.datasets
    dataset = (await datasets.GetDataset(dataset_pb2.GetDatasetRequest(dataset_id=dataset_id))).dataset
    preview = dataset_pb2.PreviewDatasetRequest(dataset_id=dataset_id, first_doc_id=row, row_count=rows)
    shown = (await datasets.PreviewDataset(preview)).rows
    if not shown:
        sentence = f"There is no row {row}: rows are 0 to {dataset.row_count - 1}."
        raise NotFound(sentence, "ROW_NOT_FOUND")
    if session.terminal.is_json:
        session.terminal.emit({"dataset": document(dataset), "rows": [document(each) for each in shown]})
    else:
        print_dataset(session.terminal.out, dataset)
        print_rows(session.terminal.out, shown)


async def delete(session: Session, *, dataset_id: DatasetIdArgument) -> None:
    """Delete a data set that no run uses."""
    await session.client.datasets.DeleteDataset(dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id))
    session.terminal.report({"dataset_id": dataset_id}, f"{dataset_id} is deleted.")


def datasets_group() -> typer.Typer:
    return command_group(
        {
            "upload": upload,
            "preview": preview,
            "show": show,
            "delete": delete,
            "list": list_datasets,
            "mappings": list_mappings,
            "save-mapping": save_mapping,
            "delete-mapping": delete_mapping,
        },
        datasets,
    )


def print_datasets(console: Console, found: dataset_pb2.ListDatasetsResponse) -> None:
    """Two lines per data set, because its id takes a whole line."""
    name = Column("name, id", min_width=_ID_WIDTH)
    columns = (name, *numbers("rows, targets"), Column("size, by"), Column("uploaded (UTC)", "whole"))
    console.print(table(console, columns, map(_cells, found.datasets)))
    if found.next_page_token:
        shown = f"{len(found.datasets)} of {total_text(found.total)}"
        more = f"{shown}. The next page: --page {found.next_page_token}"
        say(console, more, style="dim")


def print_dataset(console: Console, dataset: dataset_pb2.Dataset) -> None:
    say(console, Text.assemble((dataset.name, "bold"), f"  {dataset.dataset_id}"))
    form = word_of(dataset_pb2.DatasetFormat, dataset.format).upper()
    facts = [
        f"{dataset.row_count:,} rows",
        f"{dataset.target_count:,} with a target",
        f"{form}, {decimal(dataset.size_bytes)}",
        dataset.endpoint,
        f"for {', '.join(dataset.models)}" if dataset.models else "",
    ]
    say(console, " · ".join(fact for fact in facts if fact), style="dim")


def _cells(dataset: dataset_pb2.Dataset) -> tuple[Cell, ...]:
    return (
        two_lines(dataset.name, dataset.dataset_id),
        two_lines(f"{dataset.row_count:,}", f"{dataset.target_count:,}"),
        two_lines(decimal(dataset.size_bytes), dataset.user),
        date_and_time(dataset.uploaded_at),
    )
