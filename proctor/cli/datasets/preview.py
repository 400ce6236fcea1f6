"""`proctor datasets preview`: the first rows of a file, and the mapping of its columns."""

import asyncio
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.datasets.rows import print_rows
from proctor.cli.program import program_name
from proctor.cli.render.table import numbers, table, texts
from proctor.cli.render.terminal import say
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.values.row_fields import MAX_PREVIEWED_UPLOAD_BYTES
from proctor.values.uploads.column_mapping import ColumnMapping

PromptOption = Annotated[
    str, typer.Option("--prompt", metavar="TEXT", help="Prompt over columns: '{{context}} {{question}}'.")
]
TargetOption = Annotated[str, typer.Option("--target", metavar="COLUMN", help="Column with the target.")]
IdOption = Annotated[str, typer.Option("--id", metavar="COLUMN", help="Column with the id of a row.")]


SavedOption = Annotated[
    str,
    typer.Option("--mapping", metavar="NAME", help="A saved mapping; the options above replace its parts."),
]


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How columns are mapped."""

    prompt: PromptOption = ""
    target: TargetOption = ""
    row_id: IdOption = ""
    mapping: SavedOption = ""

    async def read(self, client: ProctorClient, project_id: int) -> ColumnMapping | None:
        """None where none of it is given. Raises `Refused` where only a prompt is missing."""
        saved = dataset_pb2.ColumnMapping()
        if self.mapping:
            request = dataset_pb2.GetMappingRequest(name=self.mapping, project_id=project_id)
            saved = (await client.datasets.GetMapping(request)).saved.mapping
        prompt = self.prompt or saved.prompt
        if not prompt and (self.target or self.row_id):
            sentence = "--target and --id need --prompt: write it over columns, as --prompt '{{question}}'."
            raise Refused(sentence)
        if not prompt:
            return None
        return ColumnMapping(prompt, self.target or saved.target, self.row_id or saved.id)


async def preview_file(
    client: ProctorClient, file: Path, mapping: ColumnMapping | None
) -> dataset_pb2.PreviewUploadResponse:
    first = await asyncio.to_thread(_beginning, file)
    request = dataset_pb2.PreviewUploadRequest(
        name=file.name,
        beginning=first[:MAX_PREVIEWED_UPLOAD_BYTES],
        is_whole=len(first) <= MAX_PREVIEWED_UPLOAD_BYTES,
    )
    if mapping:
        request.mapping.CopyFrom(
            dataset_pb2.ColumnMapping(prompt=mapping.prompt, target=mapping.target, id=mapping.id)
        )
    return await client.datasets.PreviewUpload(request)


def _beginning(file: Path) -> bytes:
    """A byte more than is sent, which tells whether it is all."""
    try:
        with file.open("rb") as content:
            return content.read(MAX_PREVIEWED_UPLOAD_BYTES + 1)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror or error}.", "CANNOT_READ") from error


def print_preview(console: Console, file: Path, shown: dataset_pb2.PreviewUploadResponse) -> None:
    print_rows(console, shown.rows)
    if shown.faults:
        rows = ((str(fault.line or ""), fault.field, fault.problem) for fault in shown.faults)
        console.print(table(console, (*numbers("line"), *texts("field", "problem")), rows))
    if shown.columns:
        say(console, f"Columns: {', '.join(shown.columns)}.", style="dim")
    if shown.HasField("mapping"):
        before = "Proposed by the names of the columns; " if shown.is_proposed else ""
        say(console, f"{before}this uploads it so:")
        say(console, f"  {_command(file, shown.mapping)}", style="dim")


def _command(file: Path, mapping: dataset_pb2.ColumnMapping) -> str:
    options = (("--prompt", mapping.prompt), ("--target", mapping.target), ("--id", mapping.id))
    words = [text for name, value in options if value for text in (name, value)]
    return shlex.join([program_name(), "datasets", "upload", str(file), *words])
