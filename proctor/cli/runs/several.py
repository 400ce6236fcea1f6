"""One order of several models: a run for each, followed one after the other, and compared at the end."""

import uuid
from collections.abc import Sequence

from proctor.cli.gateway import Session, print_page
from proctor.cli.render.terminal import code_of_run, say
from proctor.cli.render.words import JsonValue, document
from proctor.cli.results.compare import print_comparison
from proctor.cli.results.figures import figures_so_far, print_summary
from proctor.cli.runs.follow import detach, follow_run, viewer_for
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode
from proctor.v1 import comparison_pb2, comparison_service_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.comparison import MAX_COMPARED
from proctor.values.names.run_labels import tag_of_order


def orders_of(order: run_pb2.RunOrder, also: Sequence[str]) -> Sequence[run_pb2.RunOrder]:
    """The order for its own model and for each of the others. Raises Refused."""
    models = [order.model, *also]
    if len(set(models)) < len(models):
        raise Refused("A model is named twice: name each once.")
    if len(models) > MAX_COMPARED:
        raise Refused(f"At most {MAX_COMPARED} models are evaluated together; {len(models)} are named.")
    orders = []
    for model in models:
        orders.append(run_pb2.RunOrder())
        orders[-1].CopyFrom(order)
        orders[-1].model = model
    return orders


async def submit_each(
    session: Session, orders: Sequence[run_pb2.RunOrder], labels: run_pb2.RunLabels, *, is_detached: bool
) -> ExitCode:
    """Starts nothing where one of the orders would be refused. The runs have a tag of their own."""
    client, terminal = session.client, session.terminal
    for order in orders:
        await client.runs.EstimateRun(scheduler_pb2.EstimateRunRequest(order=order))
    tag = tag_of_order(str(uuid.uuid4()))
    labels.tags.append(tag)
    runs = []
    for order in orders:
        request = scheduler_pb2.SubmitRunRequest(order=order, request_id=str(uuid.uuid4()), labels=labels)
        runs.append((await client.runs.SubmitRun(request)).run)
        say(terminal.progress, f"Run {runs[-1].run_id} of {order.model} was accepted.")
    return await _follow_and_report(session, runs, tag, is_detached=is_detached)


async def submit_until_decided(
    session: Session, order: run_pb2.RunOrder, labels: run_pb2.RunLabels, *, is_detached: bool
) -> ExitCode:
    """One order, of which the scheduler makes both runs. They have a tag of their own."""
    tag = tag_of_order(str(uuid.uuid4()))
    labels.tags.append(tag)
    request = scheduler_pb2.SubmitRunRequest(order=order, request_id=str(uuid.uuid4()), labels=labels)
    first = (await session.client.runs.SubmitRun(request)).run
    runs = [first, await session.client.run(first.order.until_decided.against_run_id)]
    for run in runs:
        say(session.terminal.progress, f"Run {run.run_id} of {run.order.model} was accepted.")
    return await _follow_and_report(session, runs, tag, is_detached=is_detached)


async def _follow_and_report(
    session: Session, runs: Sequence[run_pb2.Run], tag: str, *, is_detached: bool
) -> ExitCode:
    terminal = session.terminal
    if not is_detached:
        ended = await _follow_each(session, runs)
        if len(ended) == len(runs):
            return await _report(session, ended, tag)
    if terminal.is_json:
        terminal.emit({"runs": [document(run) for run in runs], "comparison": None})
    else:
        say(terminal.out, "The runs go on.")
        print_page(session, f"runs?tag={tag}")
    return ExitCode.OK if is_detached else ExitCode.INTERRUPTED


async def _follow_each(session: Session, runs: Sequence[run_pb2.Run]) -> Sequence[run_pb2.Run]:
    """The runs in their final states, up to the one that the viewer detached from: that leaves them all."""
    ended: list[run_pb2.Run] = []
    for run in runs:
        last = await follow_run(session.client, run.run_id, viewer_for(session.terminal, detach))
        if last is None:
            break
        ended.append(last)
    return ended


async def _report(session: Session, runs: Sequence[run_pb2.Run], tag: str) -> ExitCode:
    """The figures of each run, then their differences; the exit code is that of the first failure."""
    client, terminal = session.client, session.terminal
    summaries = [await figures_so_far(client, run.run_id) for run in runs]
    comparison = await _comparison(session, runs)
    if terminal.is_json:
        shown: list[JsonValue] = [
            {"run": document(run), "summary": document(summary)}
            for run, summary in zip(runs, summaries, strict=True)
        ]
        terminal.emit({"runs": shown, "comparison": document(comparison) if comparison else None})
    else:
        for run, summary in zip(runs, summaries, strict=True):
            say(terminal.out, f"{run.order.model} ({run.run_id})")
            print_summary(terminal.out, run, summary)
        if comparison:
            print_comparison(terminal.out, comparison)
        print_page(session, f"runs?tag={tag}")
    return next((code for run in runs if (code := code_of_run(run)) is not ExitCode.OK), ExitCode.OK)


async def _comparison(session: Session, runs: Sequence[run_pb2.Run]) -> comparison_pb2.Comparison | None:
    """None where they cannot be compared, with the reason on standard error."""
    request = comparison_service_pb2.CompareRunsRequest(run_ids=[run.run_id for run in runs])
    try:
        return (await session.client.comparisons.CompareRuns(request)).comparison
    except Refused as error:
        say(session.terminal.progress, f"The runs are not compared: {error.message}")
        return None
