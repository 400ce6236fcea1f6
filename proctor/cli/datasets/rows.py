"""Prints rows of data sets as a model would be asked."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from proctor.cli.render.terminal import quoted, say, write_verbatim
from proctor.v1 import dataset_service_pb2 as dataset_pb2


def print_rows(console: Console, rows: Sequence[dataset_pb2.DatasetRow]) -> None:
    for row in rows:
        console.rule(f"row {row.doc_id} · {row.row_id}", align="left", style="dim")
        write_verbatim(console, json.dumps(json.loads(row.body_json), indent=2, ensure_ascii=False))
        if row.HasField("target"):
            say(console, Text.assemble(("target: ", "bold"), quoted(row.target)))
        if row.metadata_json:
            say(console, Text.assemble(("metadata: ", "bold"), row.metadata_json))
