"""The figures of a run as a table, with all that one must know to read them."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli import run_words
from proctor.cli.terminal import say
from proctor.client import ProctorClient
from proctor.client_errors import NotFound
from proctor.v1 import run_pb2, summary_pb2

_NONE = "–"


async def figures_so_far(client: ProctorClient, run_id: str) -> summary_pb2.RunSummary:
    """Empty for a run that ended, or is looked at, before it was planned."""
    try:
        return await client.get_summary(run_id)
    except NotFound:
        return summary_pb2.RunSummary(run_id=run_id, is_partial=True)


def print_summary(console: Console, run: run_pb2.Run, summary: summary_pb2.RunSummary) -> None:
    if summary.tasks:
        console.print(figures_table(summary))
    for line in facts(run, summary):
        say(console, line)


def figures_table(summary: summary_pb2.RunSummary) -> Table:
    table = Table(title="Partial figures" if summary.is_partial else None, title_justify="left")
    for column in ("task", "metric"):
        table.add_column(column)
    for column in ("mean ± 95 %", "95 % interval", "n", "failed", "unparsed"):
        table.add_column(column, justify="right")
    table.add_column("scored by")
    for task in summary.tasks:
        _add_task(table, task)
    return table


def facts(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> list[Text]:
    """What stands below the table."""
    lines = [_state_line(run)]
    if not summary.tasks:
        return lines
    failed = run_words.failures(dict(summary.failures)) or "none"
    lines.append(_fact("Failures of the machinery", f"{failed} (of {summary.total} samples; never scored)"))
    lines.append(_fact("Unparsed answers", str(summary.unparsed)))
    lines.append(_fact("Tokens", _tokens(summary)))
    lines.append(_fact("Time", _times(run, summary)))
    stand_ins = [task for task in summary.tasks if task.is_stand_in]
    if stand_ins:
        names = "; ".join(
            f"{task.task} ({task.dataset})" if task.dataset else task.task for task in stand_ins
        )
        lines.append(_fact("Stand-in rows, not the official split", names))
    if summary.is_truncated_left:
        lines.append(_fact("Long prompts", "cut from the left to fit the model's context"))
    return lines


def mean_and_half_width(figure: summary_pb2.MetricFigure) -> str:
    if not figure.HasField("mean"):
        return _NONE
    if not _has_interval(figure):
        return f"{figure.mean:.4f}"
    return f"{figure.mean:.4f} ± {(figure.ci_high - figure.ci_low) / 2:.4f}"


def _add_task(table: Table, task: summary_pb2.TaskSummary) -> None:
    name = f"{task.task} (stand-in)" if task.is_stand_in else task.task
    scored_by = run_pb2.ScoringMethod.Name(task.scoring_method).removeprefix("SCORING_METHOD_").lower()
    counts = (str(task.failed), str(task.unparsed), "" if task.scoring_method == 0 else scored_by)
    figures = list(task.metrics) or [summary_pb2.MetricFigure(metric=_NONE)]
    for place, figure in enumerate(figures):
        interval = f"{figure.ci_low:.4f} to {figure.ci_high:.4f}" if _has_interval(figure) else _NONE
        shared = ("", "", "") if place else counts
        table.add_row(
            "" if place else name,
            figure.metric,
            mean_and_half_width(figure),
            interval,
            str(figure.n),
            *shared,
        )


def _state_line(run: run_pb2.Run) -> Text:
    word = run_words.state_word(run.state)
    line = Text.assemble("Run ", (run.run_id, "bold"), " ", (word, run_words.STATE_STYLES.get(run.state, "")))
    if run.state == run_pb2.RUN_STATE_FAILED and run.error.message:
        line.append(f": {run.error.message}")
    return line


def _fact(name: str, value: str) -> Text:
    return Text.assemble((f"{name}: ", "bold"), value)


def _tokens(summary: summary_pb2.RunSummary) -> str:
    usage = summary.usage
    cached = f" ({usage.cached_tokens} from a cache)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens} of prompts{cached}, {usage.completion_tokens} generated"


def _times(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    timing, total = summary.mean_timing, run_words.elapsed_seconds(run)
    parts = [f"{run_words.duration(total)} in all"] if total else []
    if total and summary.answered:
        parts.append(f"{summary.answered / total:.1f} samples/s")
    parts.append(f"{timing.total_seconds * 1000:.0f} ms per sample")
    if timing.HasField("first_token_seconds"):
        parts.append(f"{timing.first_token_seconds * 1000:.0f} ms to the first token")
    return ", ".join(parts)


def _has_interval(figure: summary_pb2.MetricFigure) -> bool:
    return figure.HasField("ci_low") and figure.HasField("ci_high")
