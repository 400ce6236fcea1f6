"""`proctor suites`: list the suites; check, add, show and delete suites of one's own."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import StorageProject
from proctor.cli.program import program_name
from proctor.cli.render.table import table, texts
from proctor.cli.render.terminal import Terminal, quoted, say, write_verbatim
from proctor.cli.render.words import document
from proctor.cli.suites.files import suite_document, suite_root
from proctor.cli.suites.known_suites import listed_suites
from proctor.client.errors import NotFound, Refused
from proctor.exit_codes import ExitCode
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2

SuiteFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A suite, a task, or a task of lm-evaluation-harness, as YAML.")
]

SuiteRoot = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="A folder around FILE: includes lead up to it, and groups name tasks of all files in it."
        " By default the folder of FILE, and of one in lm_eval/tasks that folder.",
    ),
]


async def suites(session: Session) -> None:
    """List the registered suites and their tasks; or check, add, show and delete suites of your own."""
    found = await listed_suites(session.client)
    if session.terminal.is_json:
        session.terminal.emit({"suites": [document(suite) for suite in found]})
    else:
        session.terminal.out.print(suites_table(session.terminal.out, found))


async def check(session: Session, *, file: SuiteFile, root: SuiteRoot = None) -> ExitCode:
    """Report what is wrong with a suite file, line by line. Nothing is stored."""
    folder = suite_root(file, root)
    request = suite_pb2.CheckSuiteRequest(document=suite_document(file, folder))
    checked = await session.client.suites.CheckSuite(request)
    _report_checked(session.terminal, file, folder, checked)
    return ExitCode.REFUSED if checked.faults else ExitCode.OK


async def add(
    session: Session, *, file: SuiteFile, root: SuiteRoot = None, project: StorageProject = 0
) -> ExitCode:
    """Register a suite of your own with its data files. New content becomes a new version."""
    folder = suite_root(file, root)
    sent = suite_document(file, folder)
    checked = await session.client.suites.CheckSuite(suite_pb2.CheckSuiteRequest(document=sent))
    if checked.faults:
        _report_checked(session.terminal, file, folder, checked)
        return ExitCode.REFUSED
    files = f" with {', '.join(sorted(sent.files))}" if sent.files else ""
    added = await session.client.suites.AddSuite(suite_pb2.AddSuiteRequest(document=sent, project_id=project))
    session.terminal.show(added, lambda console, shown: _print_added(console, shown, files))
    return ExitCode.OK


async def show(
    session: Session,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task, such as sst2.")],
    row: Annotated[int, typer.Option(min=0, help="Row of the split, from 0.")] = 0,
    suite: Annotated[str, typer.Option(help="Its suite, if several have a task of this name.")] = "",
    num_fewshot: Annotated[int | None, typer.Option(min=0, help="Examples in the prompt.")] = None,
) -> None:
    """Print exactly what a model would be asked."""
    named = suite or _suite_of(task, await listed_suites(session.client))
    request = suite_pb2.ShowSampleRequest(suite=named, task=task, doc_id=row, num_fewshot=num_fewshot)
    shown = await session.client.suites.ShowSample(request)
    if not session.terminal.is_json:
        say(session.terminal.out, f"{named} · {task} · row {row}", style="bold")
    session.terminal.show(shown, print_sample)


async def delete(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A suite that a user has added.")],
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="Its version.")],
) -> None:
    """Delete a version of a suite of your own that no run used."""
    try:
        await session.client.suites.DeleteSuite(suite_pb2.DeleteSuiteRequest(suite=name, version=version))
    except NotFound as error:
        raise NotFound(f"No user's suite {name} has a version {version}.", error.reason) from error
    session.terminal.report({"suite": name, "version": version}, f"Version {version} of {name} is deleted.")


def suites_group() -> typer.Typer:
    return command_group({"check": check, "add": add, "show": show, "delete": delete}, suites)


def suites_table(console: Console, found: Sequence[scheduler_pb2.SuiteInfo]) -> Table:
    return table(console, texts("suite", "tasks", "what it is"), map(_cells, found))


def _cells(suite: scheduler_pb2.SuiteInfo) -> tuple[str | Text, ...]:
    name = f"{suite.suite} (version {suite.version})" if suite.version else suite.suite
    about = Text(f"cannot be run: {suite.problem}", "red") if suite.problem else suite.description
    notes = ["Python code"] if any(task.has_code for task in suite.tasks) else []
    notes += [f"judged by {', '.join(judge.model for judge in suite.judges)}"] if suite.judges else []
    tasks = ", ".join(task.task for task in suite.tasks)
    return name, tasks, f"{about} ({'; '.join(notes)})" if notes else about


def _suite_of(task: str, found: Sequence[scheduler_pb2.SuiteInfo]) -> str:
    having = [suite.suite for suite in found if any(each.task == task for each in suite.tasks)]
    match having:
        case [only]:
            return only
        case []:
            raise NotFound(f"No suite has a task {task}: see `{program_name()} suites`.", "UNKNOWN_TASK")
    raise Refused(f"{task} is a task of {', '.join(having)}: choose with --suite.")


def _report_checked(
    terminal: Terminal, file: Path, folder: Path, checked: suite_pb2.CheckSuiteResponse
) -> None:
    if terminal.is_json:
        terminal.emit(document(checked))
        return
    for fault in checked.faults:
        path = folder / fault.file if fault.file else file
        line = f":{fault.line}" if fault.line else ""
        field = f"{fault.field}: " if fault.field else ""
        say(terminal.err, Text.assemble((f"{path}{line}: ", "bold"), f"{field}{fault.problem}"))
    if not checked.faults:
        tasks = ", ".join(task.task for task in checked.suite.tasks)
        say(terminal.out, f"{file} can be run: suite {checked.suite.suite} with {tasks}.")


def _print_added(console: Console, added: suite_pb2.AddSuiteResponse, files: str) -> None:
    name, version = added.suite.suite, added.suite.version
    known = ": this content is already registered" if added.is_known else files
    say(console, f"{name}, version {version}{known}.")
    # A version that was registered before may not be the latest, and a name alone means the latest.
    order = f"--suite {name}@{version}" if added.is_known else f"--suite {name}"
    say(console, f"  {program_name()} run {order} --model PROVIDER/NAME", style="dim")


def print_sample(console: Console, shown: suite_pb2.ShowSampleResponse) -> None:
    prompt, target = shown.sample.prompt, shown.sample.target
    turns = [(turn.role, turn.content) for turn in prompt.messages] or [("prompt", prompt.text)]
    for role, text in turns:
        console.rule(role, align="left", style="dim")
        write_verbatim(console, text)
    console.rule("end of the prompt", align="left", style="dim")
    right = set(target.right_choices) | ({target.choice} if target.HasField("choice") else set())
    for index, choice in enumerate(shown.sample.choices):
        mark = ("right ", "green") if index in right else "      "
        say(console, Text.assemble(f"{index:>3} ", mark, quoted(choice)))
    for name, value in _facts(shown):
        if value:
            say(console, Text.assemble((f"{name}: ", "bold"), value))


def _facts(shown: suite_pb2.ShowSampleResponse) -> Iterator[tuple[str, str]]:
    target = shown.sample.target
    yield "target", _all_quoted(target.texts)
    yield "known to be wrong", _all_quoted(target.wrong_texts)
    yield "stops at", _all_quoted(shown.stop)
    yield "metrics", ", ".join(f"{use.name} {use.options_json}".strip() for use in shown.scoring.metrics)
    yield "filters", shown.scoring.filters_json
    yield "at most", f"{shown.max_tokens} tokens" if shown.max_tokens else ""
    yield "answers per row", f"{shown.repeats}" if shown.repeats > 1 else ""
    yield "shares its passage with", shown.sample.cluster
    stand_in = " (stand-in rows, not the official split)" if shown.is_stand_in else ""
    yield "row from", f"{shown.row_source}, {shown.row_source_revision}{stand_in}"


def _all_quoted(texts: Sequence[str]) -> str:
    return ", ".join(map(quoted, texts))
