"""`proctor import`: logs of other tools become runs."""

import asyncio
import re
import tempfile
import uuid
import zipfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer

from proctor.cli.gateway import Session
from proctor.cli.options import StorageProject
from proctor.cli.program import program_name
from proctor.cli.render.terminal import say
from proctor.cli.render.words import counted, document
from proctor.client.errors import Refused
from proctor.v1 import import_service_pb2 as import_pb2
from proctor.v1 import run_pb2
from proctor.wire.uploads import upload_messages

_CHUNK_BYTES = 512 * 1024
# What logs consist of; models and images may lie beside them.
_ENDINGS = frozenset({".json", ".jsonl", ".txt", ".toml"})
_DATED_RESULTS = re.compile(r"results_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.json")


@dataclass(frozen=True, slots=True)
class Log:
    """A file, or files of a folder by their paths in it."""

    name: str
    folder: Path
    files: Sequence[Path]
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class ImportedAs:
    """What the log need not tell."""

    suite: Annotated[
        str, typer.Option(metavar="SUITE", help="Suite that it is of, so that it pairs with runs of it.")
    ] = ""
    model: Annotated[
        str, typer.Option(metavar="PROVIDER/NAME", help="Model; default: the one that the log names.")
    ] = ""
    task: Annotated[str, typer.Option(help="Task of one file of samples whose name does not tell it.")] = ""
    project: StorageProject = 0
    run_name: Annotated[str, typer.Option("--name", help="Name of the run.")] = ""
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Tag of the run; may be repeated.")] = None

    def header(self, name: str) -> import_pb2.ImportHeader:
        labels = run_pb2.RunLabels(name=self.run_name, tags=self.tags or ())
        return import_pb2.ImportHeader(
            name=name,
            suite=self.suite,
            model=self.model,
            task=self.task,
            project_id=self.project,
            labels=labels,
            request_id=str(uuid.uuid4()),
        )


async def import_logs(
    session: Session,
    *,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="Log of lm-eval, Inspect, HELM, Harbor or Every Eval Ever: a file, a zip or a folder.",
        ),
    ],
    imported_as: ImportedAs,
) -> None:
    """Make runs of logs of other tools: a log becomes a completed run, or nothing of it is kept."""
    if not path.exists():
        raise Refused(f"{path} is neither a file nor a folder.", "CANNOT_READ")
    imported: list[import_pb2.ImportRunResponse] = []
    try:
        for log in logs_of(path):
            with _opened(log) as content:
                sent = _messages(content, imported_as.header(log.name))
                response = await session.client.imports.ImportRun(sent)
            imported.append(response)
            if not session.terminal.is_json:
                _say(session, log, response)
    finally:
        # Also where a later log is refused: the earlier ones are runs.
        if session.terminal.is_json and imported:
            session.terminal.emit({"imported": [document(each) for each in imported]})


def logs_of(path: Path) -> list[Log]:
    """The logs of a folder, each of which becomes a run."""
    if path.is_file():
        return [Log(path.name, path.parent, [path], is_file=True)]
    files = sorted(each for each in path.rglob("*") if each.is_file())
    if of_inspect := [each for each in files if each.suffix == ".eval"]:
        return [Log(each.name, each.parent, [each], is_file=True) for each in of_inspect]
    helm = [each.parent for each in files if each.name == "scenario_state.json"]
    if len(helm) > 1:
        return [_folder(each, [file for file in files if file.is_relative_to(each)]) for each in helm]
    dated = [(each, found["date"]) for each in files if (found := _DATED_RESULTS.fullmatch(each.name))]
    if len(dated) > 1:
        return [
            _folder(results.parent, [each for each in results.parent.iterdir() if date in each.name])
            for results, date in dated
        ]
    return [_folder(path, files)]


def _folder(folder: Path, files: Sequence[Path]) -> Log:
    kept = sorted(each for each in files if each.suffix in _ENDINGS)
    if not kept:
        raise Refused(f"{folder} has no file of a log.", "CANNOT_READ")
    return Log(folder.resolve().name or "log", folder, kept)


@contextmanager
def _opened(log: Log) -> Iterator[BinaryIO]:
    try:
        if log.is_file:
            with log.files[0].open("rb") as content:
                yield content
            return
        with tempfile.TemporaryFile() as packed:
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
                for file in log.files:
                    archive.write(file, file.relative_to(log.folder))
            packed.seek(0)
            yield cast("BinaryIO", packed)
    except OSError as error:
        raise Refused(f"{log.name} cannot be read: {error.strerror or error}.", "CANNOT_READ") from error


def _messages(
    content: BinaryIO, header: import_pb2.ImportHeader
) -> AsyncGenerator[import_pb2.ImportRunRequest]:
    async def parts() -> AsyncGenerator[import_pb2.ImportHeader | bytes]:
        yield header
        while chunk := await asyncio.to_thread(content.read, _CHUNK_BYTES):
            yield chunk

    return upload_messages(import_pb2.ImportRunRequest, parts())


def _say(session: Session, log: Log, response: import_pb2.ImportRunResponse) -> None:
    run, out = response.run, session.terminal.out
    answers = counted(run.progress.recorded, "answer")
    tasks = counted(len(run.order.tasks), "task")
    say(out, f"{log.name} is run {run.run_id}: {run.order.model} over {run.order.suite}, {tasks}, {answers}.")
    for note in response.notes:
        say(out, f"  {note}", style="yellow")
    say(out, f"  {program_name()} results {run.run_id}", style="dim")
