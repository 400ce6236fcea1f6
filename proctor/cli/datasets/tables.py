"""Data sets, their rows, and the faults of a file, as text."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from proctor.cli.render.table import Cell, Column, date_and_time, numbers, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.verbatim import quoted, write_verbatim
from proctor.cli.render.words import counted, enum_word
from proctor.v1 import dataset_service_pb2 as dataset_pb2

_ID_WIDTH = 35


def print_datasets(console: Console, found: dataset_pb2.ListDatasetsResponse) -> None:
    """Two lines per data set, because its id takes a whole line."""
    name = Column("name, id", min_width=_ID_WIDTH)
    columns = (name, *numbers("rows, targets"), Column("size, by"), Column("uploaded (UTC)", "whole"))
    console.print(table(console, columns, map(_cells, found.datasets)))
    if found.next_page_token:
        more = f"{len(found.datasets)} of {found.total:,}. The next page: --page {found.next_page_token}"
        say(console, more, style="dim")


def print_dataset(console: Console, dataset: dataset_pb2.Dataset) -> None:
    say(console, Text.assemble((dataset.name, "bold"), f"  {dataset.dataset_id}"))
    form = enum_word(dataset_pb2.DatasetFormat.DESCRIPTOR, dataset.format).upper()
    facts = [
        f"{dataset.row_count:,} rows",
        f"{dataset.target_count:,} with a target",
        f"{form}, {decimal(dataset.size_bytes)}",
        dataset.endpoint,
        f"for {', '.join(dataset.models)}" if dataset.models else "",
    ]
    say(console, " · ".join(fact for fact in facts if fact), style="dim")


def print_rows(console: Console, rows: Sequence[dataset_pb2.DatasetRow]) -> None:
    for row in rows:
        console.rule(f"row {row.row} · {row.id}", align="left", style="dim")
        write_verbatim(console, json.dumps(json.loads(row.body_json), indent=2, ensure_ascii=False))
        if row.HasField("target"):
            say(console, Text.assemble(("target: ", "bold"), quoted(row.target)))
        if row.metadata_json:
            say(console, Text.assemble(("metadata: ", "bold"), row.metadata_json))


def print_faults(console: Console, name: str, refused: dataset_pb2.UploadDatasetResponse) -> None:
    shown, count = len(refused.faults), refused.fault_count
    these = f", of which these are the first {shown}" if shown < count else ""
    sentence = f"{name} is rejected and nothing of it is stored: {counted(count, 'fault')}{these}."
    say(console, sentence, style="red")
    rows = ((str(fault.line or ""), fault.field, fault.problem) for fault in refused.faults)
    console.print(table(console, (*numbers("line"), *texts("field", "problem")), rows))


def _cells(dataset: dataset_pb2.Dataset) -> tuple[Cell, ...]:
    return (
        two_lines(dataset.name, dataset.dataset_id),
        two_lines(f"{dataset.row_count:,}", f"{dataset.target_count:,}"),
        two_lines(decimal(dataset.size_bytes), dataset.user),
        date_and_time(dataset.uploaded_at),
    )
