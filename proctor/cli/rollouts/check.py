"""`proctor rollouts check`: proves that tasks are sound, on this machine and without a stack.

The programs of the scheduler and of the worker do the work, in processes: nothing here imports a service.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal, say, write_verbatim
from proctor.cli.render.words import JsonValue
from proctor.cli.rollouts.read_tasks import ReadTasks, TaskReaderFailed, read_tasks, show_faults
from proctor.cli.rollouts.sources.git_folders import export_folder
from proctor.cli.rollouts.sources.registry import open_registry
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode

_CHECK = (sys.executable, "-m", "services.worker.rollouts")
_SAYS = {"oracle": "its solution", "none": "no work"}
_EXPECTED = {"oracle": "1.00", "none": "less than 1.00"}

TasksArgument = Annotated[
    Path | None, typer.Argument(metavar="[DIR]", help="A task, or a folder or .tar.gz file of tasks.")
]
Verbosity = Annotated[int, typer.Option("-v", count=True, help="Print what the tests printed.")]
GitOption = Annotated[str, typer.Option("--git", metavar="REPOSITORY", help="DIR is in this repository.")]
RevisionOption = Annotated[str, typer.Option("--revision", help="Revision of the repository; default: HEAD.")]


DatasetOption = Annotated[
    str, typer.Option("--dataset", metavar="NAME@VERSION", help="A data set of --registry, instead of DIR.")
]
RegistryOption = Annotated[str, typer.Option("--registry", metavar="PATH", help="As of `rollouts run`.")]
MirrorsOption = Annotated[str, typer.Option("--mirrors", metavar="DIR", help="As of `rollouts run`.")]


def check(
    tasks: TasksArgument = None,
    *,
    verbose: Verbosity = 0,
    git: GitOption = "",
    revision: RevisionOption = "",
    dataset: DatasetOption = "",
    registry: RegistryOption = "",
    mirrors: MirrorsOption = "",
    as_json: AsJson = False,
) -> None:
    """Prove that tasks are sound: the solution of each scores 1.0 in a sandbox, and no work at all less."""
    terminal = Terminal(as_json)
    of_folder = {"DIR": tasks, "--git": git, "--revision": revision}
    of_dataset = {"--dataset": dataset, "--registry": registry, "--mirrors": mirrors}
    if problem := _problem(of_folder, of_dataset):
        terminal.print_error(problem, "INVALID_ARGUMENT")
        raise typer.Exit(ExitCode.REFUSED)
    if tasks is not None and not git:
        _check(terminal, tasks, verbose)
    with tempfile.TemporaryDirectory(prefix="proctor-tasks-") as into:
        try:
            if dataset:
                folder = _dataset_folder(dataset, registry, mirrors, Path(into))
            else:
                folder = export_folder(git, revision, str(tasks), Path(into)).path
        except Refused as refused:
            terminal.print_error(str(refused), "INVALID_TASK_FOLDER")
            raise typer.Exit(ExitCode.REFUSED) from refused
        _check(terminal, folder, verbose)


def _problem(of_folder: Mapping[str, object], of_dataset: Mapping[str, object]) -> str:
    """What is wrong with the options together; "" where nothing is."""
    if any(of_dataset.values()):
        if any(of_folder.values()):
            return "DIR and --dataset: give one of them."
        missing = [name for name in ("--dataset", "--registry") if not of_dataset[name]]
        return f"A data set needs {' and '.join(missing)} too." if missing else ""
    if not of_folder["DIR"]:
        return "Name a folder of tasks, or a data set: --dataset NAME@VERSION --registry PATH."
    if of_folder["--revision"] and not of_folder["--git"]:
        return "--revision names a revision of a repository: give the repository with --git."
    return ""


def _dataset_folder(dataset: str, registry: str, mirrors: str, into: Path) -> Path:
    """The tasks of a data set beside each other, in its order. Raises Refused."""
    exported, together = into / "exported", into / "tasks"
    exported.mkdir()
    folders = open_registry(registry, mirrors).folders(dataset, exported)
    names = Counter(folder.name for folder, _ in folders)
    width = len(str(len(folders)))
    for number, (folder, _) in enumerate(folders, 1):
        name = folder.name if names[folder.name] == 1 else f"{number:0{width}}-{folder.name}"
        # Links stay links, which the reader of tasks refuses by name.
        shutil.copytree(folder, together / name, symlinks=True)
    return together


def _check(terminal: Terminal, tasks: Path, verbose: int) -> NoReturn:
    read = _read(terminal, tasks)
    show_faults(terminal, read)
    with subprocess.Popen(
        _CHECK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as checking:
        checked: list[JsonValue] = []
        unsound = 0
        for each in _results(checking, read.messages):
            checked.append(each)
            unsound += not each["is_sound"]
            if not terminal.is_json:
                _print(terminal, each, verbose)
        errors = checking.stderr.read() if checking.stderr else b""
    if checking.returncode:
        ended = subprocess.CompletedProcess(_CHECK, checking.returncode, b"", errors)
        _report_end(terminal, ended, "SANDBOX")
    if terminal.is_json:
        faults: list[JsonValue] = [asdict(fault) for fault in read.faults]
        is_sound = not unsound and not faults
        terminal.emit(
            {"is_sound": is_sound, "tasks": checked, "faults": faults, "without_task": list(read.others)}
        )
    else:
        count = f"{len(checked)} task{'s' * (len(checked) != 1)}"
        unread = f" {len(read.faults)} cannot be read." if read.faults else ""
        say(terminal.out, f"{count}: {len(checked) - unsound} sound, {unsound} not.{unread}")
    raise typer.Exit(ExitCode.FAILED if unsound or read.faults else ExitCode.OK)


def _read(terminal: Terminal, tasks: Path) -> ReadTasks:
    try:
        return read_tasks(tasks)
    except Refused as refused:
        terminal.print_error(str(refused), "INVALID_TASK_FOLDER")
        raise typer.Exit(ExitCode.REFUSED) from refused
    except TaskReaderFailed as failed:
        terminal.print_error(str(failed), "INVALID_TASK_FOLDER")
        raise typer.Exit(ExitCode.INTERNAL) from failed


def _report_end(terminal: Terminal, ended: subprocess.CompletedProcess[bytes], reason: str) -> None:
    """The last line is the sentence; what is before it are faults of the program."""
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines() or ["it ended without a word"]
    terminal.print_error(lines[-1], reason)
    raise typer.Exit(ExitCode.REFUSED if ended.returncode == ExitCode.REFUSED else ExitCode.INTERNAL)


def _results(checking: subprocess.Popen[bytes], tasks: bytes) -> Iterator[dict[str, Any]]:
    """Yields results as they come. The process reads all tasks before it writes."""
    assert checking.stdin is not None
    assert checking.stdout is not None
    try:
        checking.stdin.write(tasks)
        checking.stdin.close()
    except BrokenPipeError:
        return
    for line in checking.stdout:
        yield json.loads(line)


def _print(terminal: Terminal, checked: dict[str, Any], verbose: int) -> None:
    mark = Text("sound    ", "green") if checked["is_sound"] else Text("not sound", "red")
    say(terminal.out, Text.assemble(mark, " ", (checked["task_id"], "bold")))
    for agent in checked["agents"]:
        is_right = agent["is_as_expected"]
        scored = "no score" if agent["score"] is None else f"{agent['score']:.2f}"
        because = agent["problem"] or agent["detail"]
        line = f"  {_SAYS[agent['agent']]}: {scored}, expected {_EXPECTED[agent['agent']]} ({because})"
        say(terminal.out, line, style="" if is_right else "red")
        for suspicion in agent["suspicions"]:
            say(terminal.out, f"    suspicion: {suspicion}", style="yellow")
        if verbose or not is_right:
            write_verbatim(terminal.out, _indented(agent["log"]))
    for warning in checked["warnings"]:
        say(terminal.out, f"  warning: {warning}", style="yellow")
    if verbose:
        for note in checked["notes"]:
            say(terminal.out, f"  note: {note}", style="dim")


def _indented(log: str) -> str:
    return "\n".join(f"    {line}" for line in log.rstrip().splitlines())
