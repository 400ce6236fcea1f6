"""`proctor rollouts run`, `eval` and `summarize`: order rollouts, follow them, write what came of them."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.gateway import Session, print_page
from proctor.cli.render.terminal import Terminal, execute, say, write_verbatim
from proctor.cli.render.words import duration
from proctor.cli.rollouts.archive import order_of, packed
from proctor.cli.rollouts.config import RolloutsConfig, read_config
from proctor.cli.rollouts.dataset_options import DatasetOptions
from proctor.cli.rollouts.folders import STAMP_FORM, OrderedRun, RolloutFolders, load_folders
from proctor.cli.rollouts.gradable import GradeCheck, TasksToCheck, check_gradable, known_check
from proctor.cli.rollouts.outcomes import recorded_outcomes
from proctor.cli.rollouts.summary import show_evaluation, show_summary
from proctor.client.errors import NotFound, Refused
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.v1 import rollout_pb2, rollout_service_pb2, run_pb2, summary_pb2
from proctor.values.rollout import MAX_MODELS
from proctor.wire.rollout_orders import row_rollouts

_BAR_LENGTH = 20
_QUEUE_FULL = "QUEUE_FULL"
DEFAULT_DATA = Path("data")

ConfigArgument = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG.toml]", help="Tasks, models and rollouts.")
]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name in the configuration, or the folder of results.")
]
DataOption = Annotated[Path, typer.Option("--data", help="Folder of results.")]
Verbosity = Annotated[
    int, typer.Option("-v", count=True, help="A line for each rollout; -vv: what its tests printed too.")
]
UncheckedOption = Annotated[
    bool,
    typer.Option("--no-check", help="Do not execute the tasks' own solutions before a model is asked."),
]
_WITHOUT_MODEL = (rollout_pb2.AGENT_KIND_ORACLE, rollout_pb2.AGENT_KIND_NONE)


@dataclass(frozen=True, slots=True)
class StampOptions:
    """Selects rollouts of a name: the latest, or those with a time stamp."""

    is_latest: Annotated[bool, typer.Option("--latest", help="The latest; the default.")] = False
    rollout: Annotated[str, typer.Option(metavar="STAMP", help="Rollouts with this time stamp.")] = ""


async def run(
    session: Session,
    of_dataset: DatasetOptions,
    config: ConfigArgument = None,
    *,
    verbose: Verbosity = 0,
    data: DataOption = DEFAULT_DATA,
    is_unchecked: UncheckedOption = False,
) -> ExitCode:
    """Order rollouts of tasks, follow them, and write a folder for each. Ctrl-C leaves them going."""
    read = of_dataset.config() if config is None else read_config(config)
    if config is not None and of_dataset.is_given:
        raise Refused("CONFIG.toml and options of --dataset: give one of them; the file may name a data set.")
    stamp = time.strftime(STAMP_FORM, time.gmtime())
    folders = RolloutFolders(data, read.name, stamp, str(read.path))
    for line in _opening_lines(read, folders, verbose):
        say(session.terminal.progress, line)
    tasks = await _uploaded(session.client, read)
    checked: GradeCheck | None = None
    if read.agent.kind not in _WITHOUT_MODEL:
        to_check = TasksToCheck(
            tasks.tasks_digest, [entry.folder for entry in read.tasks], read.agent.verification
        )
        known = known_check(session.client, to_check) if is_unchecked else _check(session, read, to_check)
        checked = await known
    folders.save_configuration(read.document)
    runs = Ordering(session, read, tasks, checked, folders).runs()
    ended = await _follow(session, folders, verbose, runs, read.total)
    code = _report(session.terminal, folders, ended)
    show_summary(session.terminal, folders)
    return code


def _opening_lines(read: RolloutsConfig, folders: RolloutFolders, verbose: int) -> Iterator[str]:
    """Word for word what scripts read."""
    parallel = f"parallel={read.parallel}" if read.parallel else ""
    yield f"[rollouts] config={read.path} name={read.name} tasks={read.total} {parallel}".rstrip()
    yield f"[rollouts] output={folders.folder}"
    if not verbose:
        yield "[rollouts] Running in quiet mode - use -vv for full output"
        yield f"[rollouts] Starting {read.total} tasks" + (f" with {parallel}" if parallel else "")


async def evaluate(
    session: Session,
    name: NameArgument,
    which: StampOptions,
    verbose: Verbosity = 0,
    data: DataOption = DEFAULT_DATA,
) -> ExitCode:
    """Fetch the results of rollouts again, such as after a Ctrl-C or a retry, and follow those that go on."""
    folders = load_folders(data, name, which.rollout)
    ended = await _follow(session, folders, verbose, _ordered_before(folders), folders.total)
    code = _report(session.terminal, folders, ended)
    summaries = [await _figures_so_far(session.client, ordered.run_id) for ordered in folders.runs]
    show_evaluation(session.terminal, folders, summaries)
    return code


async def _figures_so_far(client: ProctorClient, run_id: str) -> summary_pb2.RunSummary:
    """Empty for a run that has not been planned, or ended before."""
    try:
        return await client.summary(run_id)
    except NotFound:
        return summary_pb2.RunSummary(run_id=run_id, is_partial=True)


def summarize(
    name: NameArgument,
    is_latest: Annotated[bool, typer.Option("--latest", help="The latest; the default.")] = False,  # noqa: ARG001  # the default
    rollout: Annotated[str, typer.Option(metavar="STAMP", help="Rollouts with this time stamp.")] = "",
    data: DataOption = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Sum up rollouts from their folders: passes, scores and failures of each task and model."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        show_summary(terminal, load_folders(data, name, rollout))
        return ExitCode.OK

    execute(terminal, work)


async def _uploaded(client: ProctorClient, config: RolloutsConfig) -> rollout_service_pb2.UploadTasksResponse:
    tasks = packed(config.tasks)
    header = rollout_service_pb2.TasksHeader(name=config.name, overrides_json=tasks.overrides_json)
    return await client.upload_tasks(header, tasks.archive)


async def _check(session: Session, config: RolloutsConfig, tasks: TasksToCheck) -> GradeCheck:
    """Raises Refused where workers cannot grade a task."""
    count = len(tasks.folders)
    model = config.entries[0].model
    with session.terminal.progress.status(f"Checking {count} tasks by their solutions..."):
        checked = await check_gradable(session.client, tasks, model, config.project_id)
    if checked.is_new and not checked.problems:
        proved = f"{count - len(checked.unproved)} of {count}"
        say(session.terminal.progress, f"[rollouts] checked: the solutions of {proved} tasks score 1.0")
    for task_id, problem in checked.problems.items():
        say(session.terminal.err, f"{task_id} cannot be graded here: {problem}", style="red")
    if checked.problems:
        which = f"{len(checked.problems)} task{'s' * (len(checked.problems) != 1)}"
        raise Refused(
            f"No model was asked, since {which} cannot be graded. Leave them out, or order with --no-check."
        )
    return checked


@dataclass(slots=True)
class Ordering:
    """Submits the order of a configuration, in parts where the queue has no room for all of its runs."""

    session: Session
    config: RolloutsConfig
    tasks: rollout_service_pb2.UploadTasksResponse
    checked: GradeCheck | None
    folders: RolloutFolders
    space: str = field(default_factory=lambda: str(uuid.uuid4()))
    pause_seconds: float = 5.0
    has_waited: bool = False

    async def runs(self) -> AsyncIterator[OrderedRun]:
        """The runs as they are ordered."""
        models = list(self.config.model_rollouts)
        size = MAX_MODELS
        while models:
            try:
                ordered = await self._submit(models[:size])
            except Refused as refused:
                if refused.reason != _QUEUE_FULL:
                    raise
                limit = int(refused.facts.get("limit", "1"))
                # Half of what may wait: else the queue would have to be empty each time.
                half = max(1, limit // 2)
                await self._wait(limit, 0.0 if half < len(models[:size]) else self.pause_seconds)
                size = half
                continue
            models = models[size:]
            print_page(self.session, f"rollouts/{ordered.order_id}")
            for run in self._added(ordered):
                yield run
            self.folders.save()

    async def _submit(self, models: Sequence[str]) -> rollout_service_pb2.SubmitRolloutsResponse:
        order = order_of(self.config, models, self.tasks, self.space)
        for task_id, tests in (self.checked.solved_tests if self.checked else {}).items():
            order.solved_tests[task_id].CopyFrom(tests)
        return await self.session.client.rollouts.SubmitRollouts(order)

    async def _wait(self, limit: int, seconds: float) -> None:
        if not self.has_waited:
            line = f"[rollouts] {limit} of your runs wait already; the rest follows"
            say(self.session.terminal.progress, line)
        self.has_waited = True
        await asyncio.sleep(seconds)

    def _added(self, ordered: rollout_service_pb2.SubmitRolloutsResponse) -> Iterator[OrderedRun]:
        task_dirs = [entry.shown for entry in self.config.tasks]
        repositories = [entry.repository for entry in self.config.tasks]
        for run in ordered.runs:
            known = OrderedRun(
                run_id=run.run_id,
                model=run.order.model,
                rollouts=row_rollouts(run.order, len(task_dirs)),
                first=self.folders.total,
                task_dirs=task_dirs,
                task_ids=list(ordered.task_ids),
                repositories=repositories,
            )
            self.folders.runs.append(known)
            yield known


async def _ordered_before(folders: RolloutFolders) -> AsyncIterator[OrderedRun]:
    for ordered in folders.runs:
        yield ordered


async def _follow(
    session: Session, folders: RolloutFolders, verbose: int, runs: AsyncIterator[OrderedRun], total: int
) -> list[run_pb2.Run]:
    """The runs at their end. `runs` may come while others go on; `total` counts the rollouts of all."""
    terminal, client = session.terminal, session.client
    known, began = len(folders.results), time.monotonic()

    def shown() -> str:
        return waiting(len(folders.results), total, known, time.monotonic() - began)

    with _spinner(terminal, shown(), verbose) as spin:

        async def follow(ordered: OrderedRun) -> run_pb2.Run:
            seen, run = 0, run_pb2.Run()
            async for run in client.watch_run(ordered.run_id):
                if run.progress.recorded == seen:
                    continue
                seen = run.progress.recorded
                await _collect(client, folders, ordered, terminal, verbose)
                spin(shown())
            await _collect(client, folders, ordered, terminal, verbose)
            spin(shown())
            return run

        following: list[asyncio.Task[run_pb2.Run]] = []
        try:
            async with asyncio.TaskGroup() as group:
                following.extend(
                    [group.create_task(follow(ordered), name="follow a run") async for ordered in runs]
                )
        except ExceptionGroup as failures:
            _say_how_to_go_on(terminal, folders, total)
            # Mostly all fail for one reason.
            raise failures.exceptions[0] from None
        except asyncio.CancelledError:
            _say_how_to_go_on(terminal, folders, total)
            raise
        return [task.result() for task in following]


def _say_how_to_go_on(terminal: Terminal, folders: RolloutFolders, total: int) -> None:
    """After a Ctrl-C."""
    if not folders.runs:
        return
    following = f"`{how_to_go_on(folders)}` follows them; `proctor cancel RUN` ends one."
    say(terminal.err, f"The runs go on. {following}")
    if folders.total < total:
        say(terminal.err, f"{total - folders.total} of {total} rollouts were not ordered.")


def how_to_go_on(folders: RolloutFolders) -> str:
    elsewhere = "" if folders.root == DEFAULT_DATA else f" --data {folders.root}"
    return f"proctor rollouts eval {folders.name} --rollout {folders.stamp}{elsewhere}"


@contextmanager
def _spinner(terminal: Terminal, line: str, verbose: int) -> Iterator[Callable[[str], None]]:
    """Shows a line while rollouts go on; none where each rollout has lines of its own."""
    if verbose:
        yield lambda _: None
        return
    with terminal.progress.status(line) as spinner:
        yield spinner.update


def waiting(done: int, total: int, known: int, seconds: float) -> str:
    """The line beside the spinner: a bar, and the rate since `known` rollouts were there `seconds` ago."""
    line = f"Running tasks... {done}/{total} completed"
    new = done - known
    if new <= 0 or seconds <= 0 or not total:
        return line
    filled = done * _BAR_LENGTH // total
    bar = "█" * filled + "░" * (_BAR_LENGTH - filled)
    left = duration((total - done) * seconds / new)
    return f"{line} {bar} {60 * new / seconds:.1f}/min, {left} left"


async def _collect(
    client: ProctorClient, folders: RolloutFolders, ordered: OrderedRun, terminal: Terminal, verbose: int
) -> None:
    """Collects rollouts recorded since. The manifest is written after the folders that it names."""
    is_new = False
    async for outcome in recorded_outcomes(client, ordered.run_id):
        number = folders.add(ordered, outcome)
        if number is None:
            continue
        is_new = True
        result = folders.results[number]
        for line in result_lines(result, verbose):
            say(terminal.progress, line)
        if verbose > 1:
            log = (Path(result["run_dir"]) / "logs" / "eval.log").read_text(encoding="utf-8")
            write_verbatim(terminal.progress, log.rstrip())
    if is_new:
        folders.save()


def result_lines(result: Mapping[str, Any], verbose: int) -> Iterator[str]:
    """A rollout that is there: word for word what scripts read, and with -v what came of it."""
    if not verbose:
        mark = "✗" if result["launch_rc"] else "✓"
        yield f"{mark} Task {result['run_id']} completed ({result['status']})"
        return
    yield f"[rollouts] finished: run_id={result['run_id']} status={result['status']}"
    score = "none" if result["score"] is None else f"{result['score']:.2f}"
    which = f"task={result['task_id']} model={result['model']} rollout={result['rollout']}"
    yield f"[rollouts] {which} score={score} {result['problem']}".rstrip()
    for suspicion in result.get("suspicions", ()):
        yield f"[rollouts] suspicion: {suspicion}"


def _report(terminal: Terminal, folders: RolloutFolders, ended: Sequence[run_pb2.Run]) -> ExitCode:
    failed = [run for run in ended if run.state != run_pb2.RUN_STATE_COMPLETED]
    for run in failed:
        why = run.error.message or "it was cancelled."
        say(terminal.err, f"The run {run.run_id} of {run.order.model} did not complete: {why}", style="red")
    if not failed and len(folders.results) == folders.total:
        say(terminal.progress, f"✓ All {folders.total} tasks completed!")
    return ExitCode.FAILED if failed else ExitCode.OK
