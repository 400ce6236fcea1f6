"""`proctor export` and `proctor golden`: answers as a file, and golden and wrong marks."""

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import RunIdArgument
from proctor.cli.render.terminal import Terminal
from proctor.cli.render.words import counted, option_value
from proctor.client.errors import Refused
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.wire.enums import words_of
from proctor.wire.stubs import chunks_of

_STDOUT = "-"

Chunks = AsyncGenerator[export_pb2.ExportRunResponse] | AsyncGenerator[export_pb2.ExportGoldenAnswersResponse]


@dataclass(frozen=True, slots=True)
class Destination:
    """The path of the file to write."""

    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="File to write; - is stdout.")
    ]
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False


async def export(
    session: Session,
    *,
    run_id: RunIdArgument,
    form: Annotated[str, typer.Option("--format", help=" | ".join(words_of(export_pb2.ExportFormat)))],
    destination: Destination,
    task: Annotated[
        str, typer.Option(help="Only this task; required by lm_eval if the run has several.")
    ] = "",
) -> None:
    """Write a run as a file, completely or not at all."""
    chosen = option_value(export_pb2.ExportFormat, form, "--format")
    request = export_pb2.ExportRunRequest(run_id=run_id, format=chosen, task=task)
    await _save(session.terminal, destination, chunks_of(session.client.exports.ExportRun(request)))


async def card(session: Session, *, run_id: RunIdArgument, destination: Destination) -> None:
    """Write the signed result card of a closed run, which `proctor verify` checks without a server."""
    request = export_pb2.ExportRunRequest(run_id=run_id, format=export_pb2.EXPORT_FORMAT_CARD)
    await _save(session.terminal, destination, chunks_of(session.client.exports.ExportRun(request)))


async def export_golden(
    session: Session,
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID", help="Ids of 1 to 6 runs.")],
    form: Annotated[str, typer.Option(help=" | ".join(words_of(export_pb2.GoldenForm)))],
    destination: Destination,
) -> None:
    """Write golden answers as JSON lines: chats for training, or a data set for upload."""
    chosen = option_value(export_pb2.GoldenForm, form, "--form")
    request = export_pb2.ExportGoldenAnswersRequest(run_ids=run_ids, form=chosen)
    await _save(session.terminal, destination, chunks_of(session.client.exports.ExportGoldenAnswers(request)))


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


async def _save(terminal: Terminal, to: Destination, chunks: Chunks) -> None:
    """Refuses a destination before the gateway is called: `chunks` calls it only when iterated."""
    is_stdout = to.output == _STDOUT
    if is_stdout and terminal.is_json:
        raise Refused("With -o - stdout is the file; --json needs another file.")
    async with contextlib.aclosing(chunks):
        content = (chunk.content async for chunk in chunks)
        if is_stdout:
            await _write_stdout(content)
            return
        size = await write_file(Path(to.output), content, is_forced=to.force)
    terminal.report({"file": to.output, "bytes": size}, f"{to.output}: {size:,} bytes")


def _refuse_existing(path: Path, *, is_forced: bool) -> None:
    if path.is_dir():
        raise Refused(f"{path} is a folder; name a file in it.", "CANNOT_WRITE")
    if path.exists() and not is_forced:
        raise Refused(f"{path} exists; --force replaces it.", "CANNOT_WRITE")


async def _write_stdout(chunks: AsyncIterator[bytes]) -> None:
    """A reader may close the pipe early, as `head` does, without a failure."""
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


@dataclass(frozen=True, slots=True)
class MarkedAnswers:
    """The answers of a run that a mark is for."""

    run_id: RunIdArgument
    rows: Annotated[
        list[str], typer.Argument(metavar="ROW", help="Ids of rows; with --sample numbers of samples.")
    ]
    by_sample: Annotated[
        bool, typer.Option("--sample", help="ROW is the number that `proctor results` shows.")
    ] = False
    rollout: Annotated[int, typer.Option(min=0, help="Number of the repetition, from 0.")] = 0

    def keys(self) -> list[answer_pb2.AnswerKey]:
        if not self.by_sample:
            return [answer_pb2.AnswerKey(row_id=row, rollout=self.rollout) for row in self.rows]
        for row in self.rows:
            if not (row.isascii() and row.isdecimal() and len(row) < len(str(2**63))):
                raise Refused(f"{row} is not a number of a sample; without --sample it is an id.")
        return [answer_pb2.AnswerKey(sample=int(row), rollout=self.rollout) for row in self.rows]


async def mark(
    session: Session,
    answers: MarkedAnswers,
    *,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="As wrong instead; scores stay as they are.")
    ] = False,
) -> None:
    """Mark answers of a run as golden: all that are named, or none."""
    await _set_marks(session, answers, is_golden=not wrong, is_marked_wrong=wrong)


async def unmark(session: Session, answers: MarkedAnswers) -> None:
    """Remove marks, also those as wrong: all that are named, or none."""
    await _set_marks(session, answers)


async def _set_marks(
    session: Session, answers: MarkedAnswers, *, is_golden: bool = False, is_marked_wrong: bool = False
) -> None:
    """Sets the mark, or removes those of the answers where none is given."""
    request = answer_pb2.MarkAnswersRequest(
        run_id=answers.run_id, answers=answers.keys(), is_golden=is_golden, is_marked_wrong=is_marked_wrong
    )
    marked = await session.client.answers.MarkAnswers(request)
    golden, wrong = counted(marked.golden_count, "golden answer"), marked.wrong_count
    shown = f"Run {answers.run_id} has {golden}{f' and {wrong} marked as wrong' if wrong else ''} now."
    counts = {"golden_count": marked.golden_count, "wrong_count": wrong}
    session.terminal.report({"run_id": answers.run_id, **counts}, shown)


def golden_group() -> typer.Typer:
    return command_group(
        {"mark": mark, "unmark": unmark, "export": export_golden},
        about="Mark answers as golden or as wrong, and export golden ones.",
    )
