"""Data sets, their rows, and what is wrong with a file, for people."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from proctor.cli.render.table import compact_table, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.verbatim import quoted, write_verbatim
from proctor.v1 import dataset_service_pb2 as dataset_pb2

ID_WIDTH = 35


def datasets_table(console: Console, found: Sequence[dataset_pb2.Dataset]) -> Table:
    """Two lines for each: its id is needed and takes a line of its own."""
    table = compact_table(console)
    table.add_column("name, id", overflow="fold", min_width=ID_WIDTH)
    table.add_column("rows, targets", justify="right")
    table.add_column("size, by", overflow="fold")
    table.add_column("uploaded (UTC)")
    for dataset in found:
        table.add_row(
            two_lines(dataset.name, dataset.dataset_id),
            two_lines(f"{dataset.row_count:,}", f"{dataset.target_count:,}"),
            two_lines(decimal(dataset.size_bytes), dataset.user),
            two_lines(*f"{dataset.uploaded_at.ToDatetime():%Y-%m-%d %H:%M:%S}".split()),
        )
    return table


def print_dataset(console: Console, dataset: dataset_pb2.Dataset) -> None:
    say(console, Text.assemble((dataset.name, "bold"), f"  {dataset.dataset_id}"))
    form = dataset_pb2.DatasetFormat.Name(dataset.format).removeprefix("DATASET_FORMAT_")
    facts = [f"{dataset.row_count:,} rows", f"{dataset.target_count:,} with a target"]
    facts += [f"{form}, {decimal(dataset.size_bytes)}"]
    facts += [dataset.endpoint] if dataset.endpoint else []
    facts += [f"for {', '.join(dataset.models)}"] if dataset.models else []
    say(console, " · ".join(facts), style="dim")


def print_rows(console: Console, rows: Sequence[dataset_pb2.DatasetRow]) -> None:
    for row in rows:
        console.rule(f"row {row.row} · {row.id}", align="left", style="dim")
        write_verbatim(console, _indented(row.body_json))
        if row.HasField("target"):
            say(console, Text.assemble(("target: ", "bold"), quoted(row.target)))
        if row.metadata_json:
            say(console, Text.assemble(("metadata: ", "bold"), row.metadata_json))


def print_faults(console: Console, name: str, refused: dataset_pb2.UploadDatasetResponse) -> None:
    shown, count = len(refused.faults), refused.fault_count
    how_many = "1 fault" if count == 1 else f"{count:,} faults"
    these = f", of which these are the first {shown}" if shown < count else ""
    say(console, f"{name} is refused and nothing of it is kept: {how_many}{these}.", style="red")
    table = compact_table(console)
    table.add_column("line", justify="right")
    table.add_column("field", overflow="fold")
    table.add_column("what is wrong", overflow="fold")
    for fault in refused.faults:
        table.add_row(f"{fault.line}" if fault.line else "", fault.field, fault.problem)
    console.print(table)


def _indented(body: str) -> str:
    return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
