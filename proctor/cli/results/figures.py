"""How the times of a run's answers are spread, as a table.
The figures of a run as a table, with all that one must know to read them.
"""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.render import words as run_words
from proctor.cli.render.table import compact_table, is_wide
from proctor.cli.render.terminal import say
from proctor.cli.render.words import NONE, interval, mean_and_half_width, scoring_word
from proctor.client.errors import NotFound
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import run_pb2, summary_pb2

_SHARES = ("mean", "p50", "p90", "p95", "p99")


def timing_table(console: Console, timing: summary_pb2.TimingSummary) -> Table | None:
    """None where no answer tells its time, as in runs of earlier releases."""
    times = {
        "queue": timing.queue,
        "first token": timing.first_token,
        "between tokens": timing.between_tokens,
        "whole answer": timing.total,
    }
    rows = [(name, spread, *_unit(spread)) for name, spread in times.items()]
    rows.append(("tokens", timing.tokens_per_second, "/s", 1.0))
    told = [row for row in rows if row[1].n]
    if not told:
        return None
    table = compact_table(console)
    table.add_column("time of an answer")
    for column in ("", *_SHARES, "n"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, spread, unit, factor in told:
        figures = (_number(factor * getattr(spread, share)) for share in _SHARES)
        table.add_row(name, unit, *figures, str(spread.n))
    return table


def _unit(spread: summary_pb2.Percentiles) -> tuple[str, float]:
    """One for the whole row, so that its figures can be told apart at a glance."""
    return ("s", 1.0) if spread.p50 >= 1 else ("ms", 1000.0)


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


_INTERVAL = "95 % interval"
_TEXTS = ("task", "metric", "scored by")
_COLUMNS = ("task", "metric", "mean ± 95 %", _INTERVAL, "n", "failed", "unparsed", "scored by")


async def figures_so_far(client: ProctorClient, run_id: str) -> summary_pb2.RunSummary:
    """Empty for a run that ended, or is looked at, before it was planned."""
    try:
        return await client.get_summary(run_id)
    except NotFound:
        return summary_pb2.RunSummary(run_id=run_id, is_partial=True)


def print_summary(console: Console, run: run_pb2.Run, summary: summary_pb2.RunSummary) -> None:
    if any(task.metrics for task in summary.tasks) or not run.order.dataset_id:
        # The one group of a data set has the figures of its one task.
        console.print(figures_table(console, summary, has_groups=not run.order.dataset_id))
    for line in facts(run, summary):
        say(console, line)
    times = timing_table(console, summary.timing)
    if times is not None:
        console.print(times)


def figures_table(console: Console, summary: summary_pb2.RunSummary, *, has_groups: bool = True) -> Table:
    """Where there is no room for the interval, its half width stands alone."""
    table = compact_table(console, "Partial figures" if summary.is_partial else None)
    for column in _COLUMNS:
        is_number = column not in _TEXTS
        if column != _INTERVAL or is_wide(console):
            table.add_column(
                column, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
            )
    for task in summary.tasks:
        _add_task(table, task)
    for group in summary.groups if has_groups else ():
        table.add_section()
        _add_group(table, group, summary)
    return table


def facts(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> list[Text]:
    """What stands below the table."""
    lines = [_state_line(run)]
    if not summary.tasks:
        return lines
    if run.order.dataset_id:
        lines.append(_fact("Answers", _answers(run, summary)))
    failed = run_words.failures(dict(summary.failures)) or "none"
    lines.append(_fact("Failures of the machinery", f"{failed} (of {summary.total} samples; never scored)"))
    if run.order.metrics or not run.order.dataset_id:
        lines.append(_fact("Unparsed answers", _unparsed(summary)))
    lines.append(_fact("Tokens", _tokens(summary)))
    if summary.HasField("cost"):
        lines.append(_fact("Cost", run_words.money(summary.cost, summary.price.currency)))
    lines.append(_fact("Time", _times(run, summary)))
    if run.order.reuse_answers:
        lines.append(_fact("Answers of earlier runs", f"{run.reused_answers}, without times and costs"))
    lines.extend(_notes(summary))
    return lines


def _add_task(table: Table, task: summary_pb2.TaskSummary) -> None:
    """What the figures share stands once, in the first row."""
    shared = {
        "task": f"{task.task} (stand-in)" if task.is_stand_in else task.task,
        "failed": str(task.failed),
        "unparsed": str(task.unparsed),
        "scored by": scoring_word(task.scoring_method),
    }
    for place, figure in enumerate(task.metrics or [summary_pb2.MetricFigure(metric=NONE)]):
        _add_row(table, figure, {} if place else shared)


def _add_group(table: Table, group: summary_pb2.GroupSummary, summary: summary_pb2.RunSummary) -> None:
    members = [task for task in summary.tasks if task.task in group.tasks]
    for place, figure in enumerate(group.metrics):
        # A figure that no task has is one of all of them.
        having = [task for task in members if any(each.metric == figure.metric for each in task.metrics)]
        ways = dict.fromkeys(scoring_word(task.scoring_method) for task in having or members)
        scored_by = ", ".join(way for way in ways if way)
        _add_row(table, figure, {"task": "" if place else group.group, "scored by": scored_by})


def _add_row(table: Table, figure: summary_pb2.MetricFigure, more: Mapping[str, str]) -> None:
    cells = {
        "metric": figure.metric,
        "mean ± 95 %": mean_and_half_width(figure),
        _INTERVAL: interval(figure),
        "n": str(figure.n),
        **more,
    }
    table.add_row(*(cells.get(str(column.header), "") for column in table.columns))


def _notes(summary: summary_pb2.RunSummary) -> Iterator[Text]:
    """What makes a figure another one than it seems."""
    stand_ins = [task for task in summary.tasks if task.is_stand_in]
    if stand_ins:
        names = (f"{task.task} ({task.dataset})" if task.dataset else task.task for task in stand_ins)
        yield _fact("Stand-in rows, not the official split", "; ".join(names))
    for group in summary.groups:
        if group.missing_tasks:
            yield _fact(f"{group.group} without", ", ".join(group.missing_tasks))
    if summary.is_truncated_left:
        yield _fact("Long prompts", "cut from the left to fit the model's context")
    spreads = [
        f"{task.task} {figure.metric} {figure.within_std:.4f}"
        for task in summary.tasks
        for figure in task.metrics
        if figure.HasField("within_std")
    ]
    if spreads:
        yield _fact("Mean spread of a sample over its rollouts", ", ".join(spreads))


def _state_line(run: run_pb2.Run) -> Text:
    word = run_words.state_word(run.state)
    line = Text.assemble("Run ", (run.run_id, "bold"), " ", (word, run_words.STATE_STYLES.get(run.state, "")))
    if run.state == run_pb2.RUN_STATE_FAILED and run.error.message:
        line.append(f": {run.error.message}")
    return line


def _fact(name: str, value: str) -> Text:
    return Text.assemble((f"{name}: ", "bold"), value)


def _answers(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    told = f"{summary.answered:,} of {summary.total:,} to {run_words.subject(run)}"
    return told if run.order.metrics else f"{told}, kept and not scored: no metric was ordered"


def _unparsed(summary: summary_pb2.RunSummary) -> str:
    if not (summary.unparsed and summary.answered):
        return str(summary.unparsed)
    share = summary.unparsed / summary.answered
    return f"{summary.unparsed} ({share:.1%} of the answers; they count as not right)"


def _tokens(summary: summary_pb2.RunSummary) -> str:
    usage = summary.usage
    cached = f" ({usage.cached_tokens} from a cache)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens} of prompts{cached}, {usage.completion_tokens} generated"


def _times(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    total = run_words.elapsed_seconds(run)
    parts = [f"{run_words.duration(total)} in all"] if total else []
    if total and summary.answered:
        parts.append(f"{summary.answered / total:.1f} samples/s")
    parts.append(f"{summary.mean_timing.total_seconds * 1000:.0f} ms per answer")
    return ", ".join(parts)
