"""A file that is there whole or not at all: written beside its place, then moved there.
`proctor export` and `proctor rescore`: stored answers as a file, or under another scoring.
`proctor golden`: mark answers that are right, and export them as training or test data.
"""

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway, RunId
from proctor.cli.parsing import chosen
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import export_service_pb2 as export_pb2

STDOUT = "-"


async def write_file(path: Path, pieces: AsyncIterator[bytes], *, is_forced: bool) -> int:
    """Bytes written. Refuses to put itself in the place of another file unless forced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        refuse_existing(path, is_forced=is_forced)
        size = await _write(draft, pieces)
        # Looked at again: the file may have been made while the pieces came.
        refuse_existing(path, is_forced=is_forced)
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}.", "CANNOT_WRITE") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return size


async def write_stdout(pieces: AsyncIterator[bytes]) -> None:
    """Who reads it may have seen enough, as `head` does; that is no failure."""
    try:
        async for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse_existing(path: Path, *, is_forced: bool) -> None:
    if path.is_dir():
        raise Refused(f"{path} is a folder; name a file in it.", "CANNOT_WRITE")
    if path.exists() and not is_forced:
        raise Refused(f"{path} exists; --force replaces it.", "CANNOT_WRITE")


async def _write(draft: Path, pieces: AsyncIterator[bytes]) -> int:
    size = 0
    with draft.open("xb") as file:
        async for piece in pieces:
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size


FORMATS: Mapping[str, export_pb2.ExportFormat.ValueType] = {
    "csv": export_pb2.EXPORT_FORMAT_CSV,
    "json": export_pb2.EXPORT_FORMAT_JSON,
    "jsonl": export_pb2.EXPORT_FORMAT_JSONL,
    "parquet": export_pb2.EXPORT_FORMAT_PARQUET,
    "html": export_pb2.EXPORT_FORMAT_HTML,
    "lm_eval": export_pb2.EXPORT_FORMAT_LM_EVAL,
}


def export(
    *,
    run_id: RunId,
    form: Annotated[str, typer.Option("--format", help=" | ".join(FORMATS))],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE|-", help="Where to; - is stdout.")],
    task: Annotated[
        str, typer.Option(help="Only this task; lm_eval needs one where there are several.")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Write a run as a file: the whole file, or none."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        request = export_pb2.ExportRunRequest(
            run_id=run_id, format=chosen(FORMATS, form, "--format"), task=task
        )
        if output == STDOUT and as_json:
            raise Refused("With -o - stdout is the file; --json needs another place.", "INVALID_PARAMETER")
        async with ProctorClient(find_gateway(gateway)) as client:
            if output == STDOUT:
                await write_stdout(_run_chunks(client.answers.export(request)))
                return ExitCode.OK
            refuse_existing(Path(output), is_forced=force)
            size = await write_file(
                Path(output), _run_chunks(client.answers.export(request)), is_forced=force
            )
        if as_json:
            terminal.emit({"file": output, "bytes": size})
        else:
            say(terminal.out, f"{output}: {size:,} bytes")
        return ExitCode.OK

    execute(terminal, work)


async def _run_chunks(pieces: AsyncGenerator[export_pb2.ExportRunResponse]) -> AsyncIterator[bytes]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece.data


_FORMS: Mapping[str, export_pb2.GoldenForm.ValueType] = {
    "training": export_pb2.GOLDEN_FORM_TRAINING,
    "test": export_pb2.GOLDEN_FORM_TEST,
}


def export_golden(
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID", help="Ids of 1 to 6 runs.")],
    form: Annotated[str, typer.Option(help=" | ".join(_FORMS))],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE|-", help="Where to; - is stdout.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Write golden answers as JSON lines: chats to train on, or a data set that can be uploaded."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        request = export_pb2.ExportGoldenAnswersRequest(run_ids=run_ids, form=chosen(_FORMS, form, "--form"))
        if output == STDOUT and as_json:
            raise Refused("With -o - stdout is the file; --json needs another place.", "INVALID_PARAMETER")
        async with ProctorClient(find_gateway(gateway)) as client:
            pieces = _golden_chunks(client.answers.export_golden(request))
            if output == STDOUT:
                await write_stdout(pieces)
                return ExitCode.OK
            refuse_existing(Path(output), is_forced=force)
            size = await write_file(Path(output), pieces, is_forced=force)
        if as_json:
            terminal.emit({"file": output, "bytes": size})
        else:
            say(terminal.out, f"{output}: {size:,} bytes")
        return ExitCode.OK

    execute(terminal, work)


async def _golden_chunks(
    pieces: AsyncGenerator[export_pb2.ExportGoldenAnswersResponse],
) -> AsyncIterator[bytes]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece.data
