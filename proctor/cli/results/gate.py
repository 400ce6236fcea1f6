"""`proctor gate`: whether a run is worse than its base by more than a margin."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from proctor.cli.gateway import Session, page_address
from proctor.cli.options import RunIdArgument, points
from proctor.cli.render.table import Cell, Column, numbers, table
from proctor.cli.render.terminal import say
from proctor.cli.render.words import NONE, counted
from proctor.cli.results.gate_files import GateReport, junit, markdown, run_line
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.values.comparison import GATE_MAX_FAILED_SHARE, GATE_MAX_UNPARSED_SHARE, points_text
from proctor.values.metrics.names import kind_of
from proctor.wire.enums import word_of

_PAGE_SIZE = 500
_CODES = {
    comparison_pb2.GATE_VERDICT_PASS: ExitCode.OK,
    comparison_pb2.GATE_VERDICT_FAIL: ExitCode.FAILED,
    comparison_pb2.GATE_VERDICT_INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}
_STYLES = {
    comparison_pb2.GATE_VERDICT_PASS: "green",
    comparison_pb2.GATE_VERDICT_FAIL: "red",
    comparison_pb2.GATE_VERDICT_INCONCLUSIVE: "yellow",
}


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The two runs, what is accepted, and the files that are written."""

    run_id: RunIdArgument
    base: Annotated[str, typer.Option("--against", metavar="RUN_ID", help="Id of the run to compare to.")]
    margin: Annotated[
        str, typer.Option(metavar="POINTS", help="Accepted drop, such as 1pt: a hundredth of a share.")
    ] = "1pt"
    alpha: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Chance of a wrong decision in any task.")
    ] = 0.05
    suite_metric: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=METRIC", help="Metric of a task instead of its main one; repeatable."),
    ] = None
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeat for several.")] = None
    whole: Annotated[
        bool, typer.Option("--whole", help="Gate the figure of the benchmark instead of each task.")
    ] = False
    may_differ: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='Accept that the runs differ in it, such as "agent".'),
    ] = None
    max_failed_share: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="With more failures in a task it is inconclusive."),
    ] = GATE_MAX_FAILED_SHARE
    max_unparsed_share: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="With more unparsed answers in a task it is inconclusive."),
    ] = GATE_MAX_UNPARSED_SHARE

    def to_proto(self) -> comparison_service_pb2.GateRunRequest:
        return comparison_service_pb2.GateRunRequest(
            run_id=self.run_id,
            base_run_id=self.base,
            margin_points=points("--margin", self.margin),
            alpha=self.alpha,
            metrics=_metrics(self.suite_metric or ()),
            tasks=self.task,
            is_whole=self.whole,
            may_differ=self.may_differ,
            max_failed_share=self.max_failed_share,
            max_unparsed_share=self.max_unparsed_share,
        )


@dataclass(frozen=True, slots=True)
class GateFiles:
    """The files that a pipeline shows."""

    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a comment for a pull request.")
    ] = None
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")] = None
    max_flips: Annotated[int, typer.Option(min=0, help="Rows in the Markdown that got worse.")] = 20
    pages: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Address of the web pages, for links; default: those of the local stack.",
        ),
    ] = ""


async def gate(session: Session, options: GateOptions, files: GateFiles) -> ExitCode:
    """Decide whether a run is worse than another one by more than a margin: PASS, FAIL or INCONCLUSIVE."""
    request = options.to_proto()
    decided = (await session.client.comparisons.GateRun(request)).gate
    if files.markdown:
        lost = await _lost_rows(session.client, decided, files.max_flips)
        report = GateReport(decided, lost, files.pages.rstrip("/") or page_address().rstrip("/"))
        _write(files.markdown, markdown(report))
    if files.junit:
        _write(files.junit, junit(decided))
    session.terminal.show(decided, print_gate)
    return _CODES[decided.verdict]


def _metrics(given: Sequence[str]) -> Mapping[str, str]:
    pairs = [text.partition("=") for text in given]
    for text, (task, equals, metric) in zip(given, pairs, strict=True):
        if not (task and equals and metric):
            raise Refused(f"--suite-metric {text}: write it as TASK=METRIC, such as cola=mcc.")
    if len({task for task, _, _ in pairs}) < len(pairs):
        raise Refused("--suite-metric names a task twice; each has one metric.")
    return {task: metric for task, _, metric in pairs}


async def _lost_rows(
    client: ProctorClient, decided: comparison_pb2.Gate, limit: int
) -> Sequence[comparison_pb2.Flip]:
    """Rows that score less than in the base, of the tasks that did not pass first."""
    run, base = (each.run_id for each in decided.runs)
    tasks = [each for each in decided.tasks if each.difference.task]
    found: list[comparison_pb2.Flip] = []
    for task in sorted(tasks, key=lambda each: each.verdict == comparison_pb2.GATE_VERDICT_PASS):
        metric = task.difference.metric
        request = comparison_service_pb2.ListFlipsRequest(
            first_run_id=run,
            second_run_id=base,
            task=task.difference.task,
            # Figures over all answers have no score of a row: then by the first metric that has.
            metric=metric if kind_of(metric).is_of_each_answer else "",
            page_size=_PAGE_SIZE,
        )
        # A page is enough for a comment: it holds more rows than anybody reads.
        flips = (await client.comparisons.ListFlips(request)).flips if len(found) < limit else ()
        found += [flip for flip in flips if flip.first_score < flip.second_score]
    return found[:limit]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}.", "CANNOT_WRITE") from error


def print_gate(console: Console, decided: comparison_pb2.Gate) -> None:
    word = word_of(comparison_pb2.GateVerdict, decided.verdict).upper()
    accepted = f"accepted drop {points_text(decided.margin_points)}, level {decided.alpha:.3g}"
    say(
        console,
        Text.assemble((word, f"bold {_STYLES[decided.verdict]}"), f"  {decided.benchmark}, {accepted}"),
    )
    for name, run in zip(("run ", "base"), decided.runs, strict=True):
        say(console, f"{name} {run_line(run)}", style="dim")
    if decided.tasks:
        _print_tasks(console, decided)
    for reason in decided.reasons:
        say(console, f"Inconclusive: {reason}", style="yellow")
    for warning in decided.warnings:
        say(console, f"Note: {warning}", style="yellow")


def _print_tasks(console: Console, decided: comparison_pb2.Gate) -> None:
    columns = (
        Column("task"),
        Column("metric", "whole"),
        *numbers("run", "base", "run − base", "limits"),
        Column("decision", "whole"),
    )
    console.print(table(console, columns, ([*_cells(task)] for task in decided.tasks)))
    for task in decided.tasks:
        for note in _notes(task):
            say(
                console,
                f"{task.difference.task or 'all tasks'} ({task.difference.metric}): {note}",
                style="dim",
            )
    say(
        console,
        f"Limits are one-sided and corrected (Holm) over {counted(len(decided.tasks), 'task')}.",
        style="dim",
    )


def _cells(task: comparison_pb2.GatedTask) -> Iterator[Cell]:
    one = task.difference
    yield one.task or "all tasks"
    yield one.metric
    yield f"{one.first_mean:.4f}" if one.HasField("first_mean") else NONE
    yield f"{one.second_mean:.4f}" if one.HasField("second_mean") else NONE
    yield f"{one.difference:+z.4f}" if one.HasField("difference") else NONE
    has_limits = task.HasField("lower_limit") and task.HasField("upper_limit")
    yield f"{task.lower_limit:+z.4f}, {task.upper_limit:+z.4f}" if has_limits else NONE
    yield Text(word_of(comparison_pb2.GateVerdict, task.verdict), _STYLES[task.verdict])


def _notes(task: comparison_pb2.GatedTask) -> Iterator[str]:
    if task.reason:
        yield task.reason
    if task.HasField("detectable"):
        yield (
            f"a true drop of {task.margin + task.detectable:.4f} would fail in 80 % of repetitions "
            f"over {task.difference.pairs:,} pairs"
        )
