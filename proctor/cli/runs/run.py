"""`proctor run` and `proctor watch`: submit a run, follow it, show its figures."""

import uuid
from collections.abc import Mapping
from typing import Annotated

import typer

from proctor.cli.datasets.upload import dataset_id_of
from proctor.cli.gateway import Session, print_page
from proctor.cli.options import RunIdArgument
from proctor.cli.program import program_name
from proctor.cli.render import words
from proctor.cli.render.terminal import Terminal, code_of_run, say
from proctor.cli.render.words import document
from proctor.cli.results.figures import figures_so_far, print_summary
from proctor.cli.runs.follow import Ask, detach, follow_run, viewer_for
from proctor.cli.runs.order import OrderOptions, labels_of, order_of, refuse_both
from proctor.cli.runs.several import orders_of, submit_each, submit_until_decided
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2


async def run(
    session: Session,
    options: OrderOptions,
    *,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="MODEL",
            help="Evaluate this model too, in a run of its own, and compare; repeat for several.",
        ),
    ] = None,
    is_detached: Annotated[
        bool, typer.Option("--detach", help="Print the id and let the run go on.")
    ] = False,
) -> ExitCode:
    """Evaluate models on a suite or a data set: live progress, then the figures. Ctrl-C asks what to do."""
    order = order_of(options)
    if order.dataset_id:
        # A file named in place of a data set is uploaded first.
        dataset_id = await dataset_id_of(session.client, order.dataset_id, session.terminal, order.project_id)
        if dataset_id is None:
            return ExitCode.REFUSED
        order.dataset_id = dataset_id
    labels = labels_of(options)
    try:
        if order.HasField("until_decided"):
            refuse_both(also)
            return await submit_until_decided(session, order, labels, is_detached=is_detached)
        if also:
            return await submit_each(session, orders_of(order, also), labels, is_detached=is_detached)
        return await submit_and_follow(session, order, labels=labels, is_detached=is_detached)
    except Refused as error:
        if error.reason == "MODEL_MISMATCH" and "line_model" in error.facts:
            hint = f"{error.message} On the command line: --line-model {error.facts['line_model']}."
            raise Refused(hint, error.reason, error.facts) from error
        raise


async def watch(session: Session, run_id: RunIdArgument) -> ExitCode:
    """Follow a run to its end, then show its figures."""
    # Fails fast without a gateway; the watch itself would wait for one to come back.
    await session.client.run(run_id)
    return await _follow_and_report(session, run_id, detach)


async def submit_and_follow(
    session: Session,
    order: run_pb2.RunOrder,
    *,
    labels: run_pb2.RunLabels | None = None,
    request_id: str = "",
    is_detached: bool = False,
    on_interrupt: Ask = detach,
) -> ExitCode:
    """`on_interrupt` decides what a Ctrl-C means if the user cannot be asked.

    A known `request_id` stands for the run that was ordered with it.
    """
    request = scheduler_pb2.SubmitRunRequest(
        order=order, request_id=request_id or str(uuid.uuid4()), labels=labels
    )
    submitted = await session.client.runs.SubmitRun(request)
    run_id = submitted.run.run_id
    if is_detached:
        return _report_detached(session, submitted.run, ExitCode.OK)
    say(session.terminal.progress, f"Run {run_id} was accepted{_expected(submitted)}.")
    return await _follow_and_report(session, run_id, on_interrupt)


def _expected(submitted: scheduler_pb2.SubmitRunResponse) -> str:
    expected = []
    if submitted.HasField("estimated_seconds"):
        expected.append(f"to take {words.duration(submitted.estimated_seconds)}")
    if submitted.HasField("estimated_cost"):
        expected.append(f"to cost {words.priced(submitted.estimated_cost, submitted.run.price)}")
    return f", expected {' and '.join(expected)}" if expected else ""


async def _follow_and_report(session: Session, run_id: str, on_interrupt: Ask) -> ExitCode:
    client, terminal = session.client, session.terminal
    ended = await follow_run(client, run_id, viewer_for(terminal, on_interrupt))
    if ended is None:
        return _report_detached(session, await client.run(run_id), ExitCode.INTERRUPTED)
    summary = await figures_so_far(client, run_id)
    if terminal.is_json:
        terminal.emit({"run": document(ended), "summary": document(summary)})
    else:
        print_summary(terminal.out, ended, summary)
        print_page(session, f"runs/{run_id}")
        print_next_commands(terminal, next_commands(ended))
    return code_of_run(ended)


def _report_detached(session: Session, run: run_pb2.Run, code: ExitCode) -> ExitCode:
    terminal = session.terminal
    if terminal.is_json:
        terminal.emit({"run": document(run), "summary": None})
        return code
    say(terminal.out, f"The run {run.run_id} goes on.")
    print_page(session, f"runs/{run.run_id}")
    print_next_commands(terminal, {f"watch {run.run_id}": "follow it", f"cancel {run.run_id}": "stop it"})
    return code


def next_commands(run: run_pb2.Run) -> dict[str, str]:
    """Commands that make sense after a run has finished, with their purposes."""
    is_completed = run.state == run_pb2.RUN_STATE_COMPLETED
    has_answers = bool(is_completed or run.progress.recorded)
    commands = {} if is_completed else {f"retry {run.run_id}": "send again what is missing or failed"}
    if has_answers:
        commands[f"results {run.run_id} --outcomes"] = "the answers"
    if has_answers and run.order.dataset_id:
        commands[f"export {run.run_id} --format jsonl -o answers.jsonl"] = "as a file"
    return commands | {"runs": "all runs"}


def print_next_commands(terminal: Terminal, commands: Mapping[str, str]) -> None:
    """Prints each command on one line, never folded, so that it can be copied.

    Purposes stand in a column; one for which there is no space stands below its command.
    """
    lines = {f"  {program_name()} {command}": purpose for command, purpose in commands.items()}
    beside = sorted(lines, key=len)
    while beside and len(beside[-1]) + 2 + max(len(lines[line]) for line in beside) > terminal.out.width:
        beside.pop()
    widest = max(map(len, beside), default=0)
    for line, purpose in lines.items():
        between = "  " if line in beside else "\n      "
        terminal.out.print(f"{line:{widest}}{between}{purpose}", style="dim", soft_wrap=True)
