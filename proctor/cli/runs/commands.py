"""`proctor runs` with its commands, `cancel`, `retry`, `pause`, `resume` and `reclose`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import PageOption, ProjectFilter, RunIdArgument, RunIdsArgument
from proctor.cli.program import program_name
from proctor.cli.render import words
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, date_and_time, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.words import document
from proctor.cli.suites.known_suites import refuse_unknown_benchmark
from proctor.client.errors import Refused
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.plain import total_text
from proctor.values.run import MAX_HISTORY_DAYS, STATE_WORDS
from proctor.wire.rollout_orders import answering_model

_NO_NAMES: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunsOptions:
    """Which runs are listed."""

    state: Annotated[str, typer.Option(help=f"{STATE_WORDS}.")] = ""
    suite: Annotated[str, typer.Option(help="Only this suite.")] = ""
    dataset: Annotated[str, typer.Option(metavar="ID", help="Only over this data set.")] = ""
    model: Annotated[str, typer.Option(help="Only this model.")] = ""
    project: ProjectFilter = None
    name: Annotated[str, typer.Option(help="Only runs that have this in their names.")] = ""
    tag: Annotated[str, typer.Option(help="Only runs with this tag.")] = ""
    days: Annotated[
        int | None, typer.Option(min=1, max=MAX_HISTORY_DAYS, help="Only runs ordered in the last N days.")
    ] = None
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Runs per page.")] = 20
    page: PageOption = ""


async def runs(session: Session, options: RunsOptions) -> None:
    """List runs, newest first; or label, archive, restore or delete some."""
    chosen = scheduler_pb2.ListRunsRequest(
        state=words.option_value(run_pb2.RunState, options.state, "--state"),
        benchmark=options.suite,
        model=options.model,
        project_id=options.project,
        dataset_id=options.dataset,
        name=options.name,
        tag=options.tag,
        days=options.days or 0,
    )
    is_filtered = bool(chosen.ListFields())
    chosen.page_size, chosen.page_token = options.page_size, options.page
    found = await session.client.runs.ListRuns(chosen)
    if not found.total:
        await refuse_unknown_benchmark(session.client, options.suite or options.dataset)
    if found.runs or options.page or session.terminal.is_json:
        names = await session.client.project_names(run.order.project_id for run in found.runs)
        session.terminal.show(found, partial(print_runs, names=names))
    else:
        say(session.terminal.out, "There is no such run." if is_filtered else "There is no run yet.")


async def cancel(session: Session, run_id: RunIdArgument) -> None:
    """Cancel a run: requests in flight are aborted, recorded answers are kept."""
    run = (await session.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))).run
    _report(session, run, "was cancelled; recorded answers are kept.")


async def retry(session: Session, run_id: RunIdArgument) -> None:
    """Run a failed or cancelled run again, for the missing answers only."""
    run = (await session.client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))).run
    predicate = f"is pending again, for the missing answers only{words.priority_note(run)}"
    _report(session, run, f"{predicate}: `{program_name()} watch {run_id}`.")


async def pause(session: Session, run_id: RunIdArgument) -> None:
    """Pause a run: no further shard is dispatched; workers finish the shards that they have begun."""
    run = (await session.client.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))).run
    _report(session, run, f"is paused; `{program_name()} resume {run_id}` continues it.")


async def resume(session: Session, run_id: RunIdArgument) -> None:
    """Put a paused run back into the queue; it continues where it stopped."""
    run = (await session.client.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id))).run
    predicate = f"is in the queue again{words.priority_note(run)}: `{program_name()} watch {run_id}`."
    _report(session, run, predicate)


async def reclose(session: Session, run_id: RunIdArgument) -> None:
    """Compute the figures that the close of a run left out, over its recorded answers. Operators only."""
    response = await session.client.outcomes.RecloseRun(results_pb2.RecloseRunRequest(run_id=run_id))
    if not response.HasField("summary"):
        shown = f"`{program_name()} results {run_id}` shows its figures once they are computed"
        predicate = f"is closed again ({response.progress:.0%}); {shown}."
    elif response.summary.problems:
        predicate = f"was closed again. Undefined: {' '.join(response.summary.problems)}"
    else:
        predicate = f"has all its figures: `{program_name()} results {run_id}`."
    session.terminal.report(document(response), f"Run {run_id} {predicate}")


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """What changes; what is not given stays as it is."""

    name: Annotated[str | None, typer.Option(help='The new name; "" removes it.')] = None
    note: Annotated[str | None, typer.Option(help='The new note; "" removes it.')] = None
    tag: Annotated[
        list[str] | None, typer.Option(help="A tag in place of all present ones; repeat for several.")
    ] = None
    add_tag: Annotated[list[str] | None, typer.Option(help="A tag to add; repeat for several.")] = None
    remove_tag: Annotated[list[str] | None, typer.Option(help="A tag to remove; repeat for several.")] = None


async def label(session: Session, run_id: RunIdArgument, options: LabelOptions) -> None:
    """Change the name, the tags or the note of a run, in any state."""
    request = scheduler_pb2.LabelRunRequest(
        run_id=run_id,
        name=options.name,
        note=options.note,
        tags=scheduler_pb2.RunTags(tags=options.tag) if options.tag else None,
        added_tags=options.add_tag,
        removed_tags=options.remove_tag,
    )
    if len(request.ListFields()) == 1:
        raise Refused("Nothing changes: give --name, --note, --tag, --add-tag or --remove-tag.")
    run = (await session.client.runs.LabelRun(request)).run
    labels = run.labels
    parts = [words.labels(labels), labels.note and f"note: {labels.note}"]
    _report(session, run, f"has {'; '.join(filter(None, parts)) or 'no name, tag or note'}.")


async def delete(session: Session, run_id: RunIdArgument) -> None:
    """Delete a closed run, with its answers; comparisons and leaderboards lose it as well."""
    await session.client.runs.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run_id))
    session.terminal.report({"run_id": run_id}, f"Run {run_id} is deleted, with its answers.")


async def archive(session: Session, run_ids: RunIdsArgument) -> None:
    """Move the answers of closed runs to the object store, in the background.

    They are shown, exported and compared from there; figures and leaderboards stay as they are.
    """
    for run_id in run_ids:
        run = (await session.client.runs.ArchiveRun(scheduler_pb2.ArchiveRunRequest(run_id=run_id))).run
        predicate = f"is {words.archive_word(run)}; its answers can be read meanwhile, and afterwards."
        _report(session, run, predicate)


async def restore(session: Session, run_ids: RunIdsArgument) -> None:
    """Move the answers of archived runs back, in the background."""
    for run_id in run_ids:
        run = (await session.client.runs.RestoreRun(scheduler_pb2.RestoreRunRequest(run_id=run_id))).run
        word = words.archive_word(run)
        _report(
            session, run, f"is {word}; its answers can be read meanwhile." if word else "is not archived."
        )


def _report(session: Session, run: run_pb2.Run, predicate: str) -> None:
    session.terminal.report({"run": document(run)}, f"Run {run.run_id} {predicate}")


def runs_group() -> typer.Typer:
    return command_group({"label": label, "archive": archive, "restore": restore, "delete": delete}, runs)


def print_runs(
    console: Console, found: scheduler_pb2.ListRunsResponse, names: Mapping[int, str] = _NO_NAMES
) -> None:
    """Two lines per run, because its id takes a whole line. `names` are those of declared projects."""
    model = Column("model, run", min_width=RUN_ID_WIDTH)
    columns = (model, *texts("benchmark, project", "created (UTC)", "state, took"))
    console.print(table(console, columns, [_cells(run, names) for run in found.runs]))
    if found.next_page_token:
        more = f"{total_text(found.total)} in all; the next page: --page {found.next_page_token}"
        say(console, more, style="dim")


def _cells(run: run_pb2.Run, names: Mapping[int, str]) -> tuple[Cell, ...]:
    took, labels = words.elapsed_seconds(run), words.labels(run.labels)
    state = Text(words.state_word(run.state), words.STATE_STYLES.get(run.state, ""))
    project = names.get(run.order.project_id, str(run.order.project_id))
    below = (words.duration(took) if took else "", words.archive_word(run))
    return (
        two_lines(answering_model(run.order), run.run_id),
        two_lines(words.benchmark(run), " · ".join(filter(None, (project, labels)))),
        date_and_time(run.created_at),
        two_lines(state, " · ".join(filter(None, below))),
    )
