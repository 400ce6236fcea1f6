"""`proctor export` and `proctor golden`: answers as a file, and the marks of correct ones."""

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.gateway import with_gateway
from proctor.cli.options import AsJson, Force, Gateway, OutputFile, RunId, User
from proctor.cli.render.terminal import Terminal, command_group
from proctor.cli.render.words import counted, enum_value, enum_words
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2

_STDOUT = "-"

Chunks = AsyncGenerator[export_pb2.ExportRunResponse] | AsyncGenerator[export_pb2.ExportGoldenAnswersResponse]


Rows = Annotated[
    list[str], typer.Argument(metavar="ROW", help="Ids of rows; with --sample numbers of samples.")
]
BySample = Annotated[bool, typer.Option("--sample", help="ROW is the number that `proctor results` shows.")]
Rollout = Annotated[int, typer.Option(min=1, help="Which repetition is meant, from 1.")]


def export(
    *,
    run_id: RunId,
    form: Annotated[str, typer.Option("--format", help=" | ".join(enum_words(export_pb2.ExportFormat)))],
    output: OutputFile,
    task: Annotated[
        str, typer.Option(help="Only this task; required by lm_eval if the run has several.")
    ] = "",
    force: Force = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Write a run as a file, completely or not at all."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        chosen = enum_value(export_pb2.ExportFormat, form, "--format")
        request = export_pb2.ExportRunRequest(run_id=run_id, format=chosen, task=task)
        _refuse_output(output, is_json=as_json, is_forced=force)
        await _save(terminal, output, client.answers.export(request), is_forced=force)

    with_gateway(work, gateway, as_json)


def export_golden(
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID", help="Ids of 1 to 6 runs.")],
    form: Annotated[str, typer.Option(help=" | ".join(enum_words(export_pb2.GoldenForm)))],
    output: OutputFile,
    force: Force = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Write golden answers as JSON lines: chats for training, or a data set for upload."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        chosen = enum_value(export_pb2.GoldenForm, form, "--form")
        request = export_pb2.ExportGoldenAnswersRequest(run_ids=run_ids, form=chosen)
        _refuse_output(output, is_json=as_json, is_forced=force)
        await _save(terminal, output, client.answers.export_golden(request), is_forced=force)

    with_gateway(work, gateway, as_json)


async def write_file(path: Path, chunks: AsyncIterator[bytes], *, is_forced: bool) -> int:
    """Returns the bytes written. Replaces an existing file only if forced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _refuse_existing(path, is_forced=is_forced)
        size = await _write(draft, chunks)
        # The file may have been created by another program while the chunks arrived.
        _refuse_existing(path, is_forced=is_forced)
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}.", "CANNOT_WRITE") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return size


async def _save(terminal: Terminal, output: str, chunks: Chunks, *, is_forced: bool) -> None:
    async with contextlib.aclosing(chunks):
        content = (chunk.data async for chunk in chunks)
        if output == _STDOUT:
            await _write_stdout(content)
            return
        size = await write_file(Path(output), content, is_forced=is_forced)
    terminal.report({"file": output, "bytes": size}, f"{output}: {size:,} bytes")


def _refuse_output(output: str, *, is_json: bool, is_forced: bool) -> None:
    """Before anything is requested of the gateway."""
    if output != _STDOUT:
        _refuse_existing(Path(output), is_forced=is_forced)
    elif is_json:
        raise Refused("With -o - stdout is the file; --json needs another file.", "INVALID_PARAMETER")


def _refuse_existing(path: Path, *, is_forced: bool) -> None:
    if path.is_dir():
        raise Refused(f"{path} is a folder; name a file in it.", "CANNOT_WRITE")
    if path.exists() and not is_forced:
        raise Refused(f"{path} exists; --force replaces it.", "CANNOT_WRITE")


async def _write_stdout(chunks: AsyncIterator[bytes]) -> None:
    """A reader that closes the pipe early, as `head` does, is no failure."""
    try:
        async for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python flushes stdout once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _write(draft: Path, chunks: AsyncIterator[bytes]) -> int:
    size = 0
    with draft.open("xb") as file:
        async for chunk in chunks:
            size += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return size


def mark(
    *,
    run_id: RunId,
    rows: Rows,
    by_sample: BySample = False,
    rollout: Rollout = 1,
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Mark answers of a run as golden: all that are named, or none."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        keys = _keys(rows, rollout, by_sample=by_sample)
        _report(terminal, run_id, await client.answers.mark(run_id, keys, is_golden=True))

    with_gateway(work, gateway, as_json, user)


def unmark(
    *,
    run_id: RunId,
    rows: Rows,
    by_sample: BySample = False,
    rollout: Rollout = 1,
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Remove marks: all that are named, or none."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        keys = _keys(rows, rollout, by_sample=by_sample)
        _report(terminal, run_id, await client.answers.mark(run_id, keys, is_golden=False))

    with_gateway(work, gateway, as_json, user)


def golden_group() -> typer.Typer:
    return command_group(
        {"mark": mark, "unmark": unmark, "export": export_golden}, about="Mark answers, and export them."
    )


def _report(terminal: Terminal, run_id: str, count: int) -> None:
    shown = f"Run {run_id} has {counted(count, 'golden answer')} now."
    terminal.report({"run_id": run_id, "golden_count": count}, shown)


def _keys(rows: Sequence[str], rollout: int, *, by_sample: bool) -> list[answer_pb2.AnswerKey]:
    if not by_sample:
        return [answer_pb2.AnswerKey(row_id=row, rollout=rollout - 1) for row in rows]
    for row in rows:
        if not (row.isascii() and row.isdecimal() and len(row) < len(str(2**63))):
            sentence = f"{row} is no number of a sample; without --sample it is an id."
            raise Refused(sentence, "INVALID_PARAMETER")
    return [answer_pb2.AnswerKey(sample=int(row), rollout=rollout - 1) for row in rows]
