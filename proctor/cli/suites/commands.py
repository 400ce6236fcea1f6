"""Suites, and data sets in their place, that a command names to look for runs.
`proctor suites`: what there is, and suites of one's own: check, add, show, delete.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway_address import find_gateway, program_name
from proctor.cli.options import AsJson, Gateway, User
from proctor.cli.render.documents import document
from proctor.cli.render.table import compact_table
from proctor.cli.render.terminal import EXIT_CODES_HELP, ExitCode, Terminal, execute, say
from proctor.cli.suites.files import suite_document
from proctor.cli.suites.sample import print_sample
from proctor.client.errors import NotFound, Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2

DATASET_PREFIX = "ds_"


async def refuse_unknown_suite(client: ProctorClient, suite: str) -> None:
    """Asked where nothing was found: runs of a suite that was removed are still shown."""
    if suite.startswith(DATASET_PREFIX):
        await client.datasets.get(suite)
        return
    known = [listed.suite for listed in await client.list_suites()]
    if suite and suite not in known:
        raise NotFound(f"There is no suite {suite}. There are: {', '.join(known)}.", "UNKNOWN_SUITE")


SuiteFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A suite, a task, or a task of lm-evaluation-harness, as YAML.")
]


def suites(context: typer.Context, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """List the registered suites and their tasks; or check, add, show and delete suites of your own."""
    if context.invoked_subcommand:
        return
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            found = await client.list_suites()
        if as_json:
            terminal.emit({"suites": [document(suite) for suite in found]})
        else:
            terminal.out.print(suites_table(terminal.out, found))
        return ExitCode.OK

    execute(terminal, work)


def check(file: SuiteFile, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Say what is wrong with a suite file, line by line, and keep nothing."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        sent = suite_document(file)
        async with ProctorClient(find_gateway(gateway)) as client:
            checked = await client.suites.check(sent)
        if as_json:
            terminal.emit(document(checked))
        else:
            _tell_checked(terminal, file, checked)
        return ExitCode.REFUSED if checked.problems else ExitCode.OK

    execute(terminal, work)


def add(file: SuiteFile, gateway: Gateway = None, user: User = "", as_json: AsJson = False) -> None:
    """Register a suite of your own with the data files beside it. New content becomes a new version."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        sent = suite_document(file)
        async with ProctorClient(find_gateway(gateway), user=user) as client:
            checked = await client.suites.check(sent)
            if checked.problems:
                return _refuse(terminal, file, checked)
            added = await client.suites.add(sent)
        if as_json:
            terminal.emit(document(added))
        else:
            _tell_added(terminal, added, sent)
        return ExitCode.OK

    execute(terminal, work)


def show(
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task, such as sst2.")],
    row: Annotated[int, typer.Option(min=0, help="Row of the split, from 0.")] = 0,
    suite: Annotated[str, typer.Option(help="Its suite, where several have a task of this name.")] = "",
    shots: Annotated[int | None, typer.Option(min=0, help="Examples in the prompt.")] = None,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Print exactly what a model would be asked."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            named = suite or _suite_of(task, await client.list_suites())
            request = suite_pb2.ShowSampleRequest(suite=named, task=task, row=row, num_fewshot=shots)
            shown = await client.suites.show_sample(request)
        if as_json:
            terminal.emit(document(shown))
        else:
            say(terminal.out, f"{named} · {task} · row {row}", style="bold")
            print_sample(terminal.out, shown)
        return ExitCode.OK

    execute(terminal, work)


def delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A suite that a user brought.")],
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="Its version.")],
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Delete a version of a suite of your own that no run used."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            await _delete(client, name, version)
        if as_json:
            terminal.emit({"suite": name, "version": version})
        else:
            say(terminal.out, f"Version {version} of {name} is gone.")
        return ExitCode.OK

    execute(terminal, work)


def suites_group() -> typer.Typer:
    group = typer.Typer(invoke_without_command=True, epilog=EXIT_CODES_HELP, callback=suites)
    for command in (check, add, show, delete):
        group.command(epilog=EXIT_CODES_HELP)(command)
    return group


def _suite_of(task: str, found: list[scheduler_pb2.SuiteInfo]) -> str:
    having = [suite.suite for suite in found if any(each.task == task for each in suite.tasks)]
    match having:
        case [only]:
            return only
        case []:
            raise NotFound(f"No suite has a task {task}: see `{program_name()} suites`.", "UNKNOWN_TASK")
    raise Refused(f"{task} is a task of {', '.join(having)}: choose with --suite.", "INVALID_PARAMETER")


async def _delete(client: ProctorClient, name: str, version: int) -> None:
    try:
        await client.suites.delete(name, version)
    except NotFound as error:
        raise NotFound(f"No user's suite {name} has a version {version}.", error.reason) from error


def _refuse(terminal: Terminal, file: Path, checked: suite_pb2.CheckSuiteResponse) -> ExitCode:
    if terminal.is_json:
        terminal.emit(document(checked))
    else:
        _tell_checked(terminal, file, checked)
    return ExitCode.REFUSED


def _tell_checked(terminal: Terminal, file: Path, checked: suite_pb2.CheckSuiteResponse) -> None:
    for problem in checked.problems:
        path = file.parent / problem.file if problem.file else file
        line = f":{problem.line}" if problem.line else ""
        key = f"{problem.key}: " if problem.key else ""
        place = Text.assemble((f"{path}{line}: ", "bold"), f"{key}{problem.problem}")
        say(terminal.err, place)
    if not checked.problems:
        tasks = ", ".join(task.task for task in checked.suite.tasks)
        say(terminal.out, f"{file} can be run: suite {checked.suite.suite} with {tasks}.")


def _tell_added(terminal: Terminal, added: suite_pb2.AddSuiteResponse, sent: suite_pb2.SuiteDocument) -> None:
    named = f"{added.suite.suite}, version {added.suite.version}"
    files = f" with {', '.join(sorted(sent.files))}" if sent.files else ""
    known = f"{named}: this content is known already." if added.is_known else f"{named}{files}."
    say(terminal.out, known)
    # A version that was known need not be the latest, which a name alone would run.
    version = f"@{added.suite.version}" if added.is_known else ""
    order = f"{program_name()} run --suite {added.suite.suite}{version} --model PROVIDER/NAME"
    say(terminal.out, f"  {order}", style="dim")


def suites_table(console: Console, found: list[scheduler_pb2.SuiteInfo]) -> Table:
    table = compact_table(console)
    for column in ("suite", "tasks", "what it is"):
        table.add_column(column, overflow="fold")
    for suite in found:
        tasks = ", ".join(task.task for task in suite.tasks)
        name = f"{suite.suite} (version {suite.version})" if suite.version else suite.suite
        about = Text(f"cannot be run: {suite.problem}", "red") if suite.problem else Text(suite.description)
        table.add_row(name, tasks, about)
    return table
