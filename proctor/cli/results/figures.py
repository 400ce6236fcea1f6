"""The figures of a run as a table, with the facts that one needs to read them."""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.render import words
from proctor.cli.render.table import Cell, Column, is_wide, numbers, table, texts
from proctor.cli.render.terminal import say
from proctor.client.errors import NotFound
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import run_pb2, summary_pb2
from proctor.values.run import unparsed_warning
from proctor.wire.contamination import contamination_sentences
from proctor.wire.decisions import decision_sentence
from proctor.wire.report import suspicions_of

_MEAN, _INTERVAL = "mean ± 95 %", "95 % interval"
_COLUMNS = (
    *texts("task", "metric"),
    *numbers(_MEAN, _INTERVAL, "n", "failed", "unparsed"),
    Column("scored by"),
)
# Of the time of a run.
_LOADED_HERE = "vllm/"
_NOTICED_SHARE = 0.1
_PERCENTILES = ("mean", "p50", "p90", "p95", "p99")


async def figures_so_far(client: ProctorClient, run_id: str) -> summary_pb2.RunSummary:
    """Empty for a run that has not been planned, or ended before."""
    try:
        return await client.summary(run_id)
    except NotFound:
        return summary_pb2.RunSummary(run_id=run_id, is_partial=True)


def print_summary(console: Console, run: run_pb2.Run, summary: summary_pb2.RunSummary) -> None:
    is_over_suite = bool(run.order.suite)
    if is_over_suite or any(task.metrics for task in summary.tasks):
        # The only group of a data set repeats the figures of its only task.
        console.print(_figures_table(console, summary, has_groups=is_over_suite))
    for name, value in _facts(run, summary):
        say(console, Text.assemble((f"{name}: ", "bold"), value) if name else value)
    times = list(_timing_rows(summary.timing))
    if times:
        columns = (Column("time of an answer"), Column("", "whole"), *numbers(*_PERCENTILES, "n"))
        console.print(table(console, columns, times))


def _figures_table(console: Console, summary: summary_pb2.RunSummary, *, has_groups: bool) -> Table:
    """Figures, without the interval on a narrow terminal: its half width stands beside the mean."""
    columns = [each for each in _COLUMNS if each.header != _INTERVAL or is_wide(console)]
    headers = [each.header for each in columns]
    tasks = (row for task in summary.tasks for row in _task_rows(task))
    made = table(
        console, columns, _ordered(headers, tasks), "Partial figures" if summary.is_partial else None
    )
    for group in summary.groups if has_groups else ():
        made.add_section()
        for row in _ordered(headers, _group_rows(group, summary)):
            made.add_row(*row)
    return made


def _ordered(headers: list[str], rows: Iterator[Mapping[str, str]]) -> Iterator[list[str]]:
    for row in rows:
        yield [row.get(header, "") for header in headers]


def _task_rows(task: summary_pb2.TaskSummary) -> Iterator[dict[str, str]]:
    """Only the first row of a task has what its figures share."""
    shared = {
        "task": f"{task.task} (stand-in)" if task.is_stand_in else task.task,
        "failed": str(task.failed),
        "unparsed": str(task.unparsed),
        "scored by": words.scoring_word(task.scoring_method),
    }
    for figure in task.metrics or [summary_pb2.MetricFigure(metric=words.NONE)]:
        yield _figure_row(figure) | shared
        shared = {}


def _group_rows(group: summary_pb2.GroupSummary, summary: summary_pb2.RunSummary) -> Iterator[dict[str, str]]:
    members = [task for task in summary.tasks if task.task in group.tasks]
    for index, figure in enumerate(group.metrics):
        # A metric that no single task has is computed from all of them.
        having = [task for task in members if any(each.metric == figure.metric for each in task.metrics)]
        methods = dict.fromkeys(words.scoring_word(task.scoring_method) for task in having or members)
        scored_by = ", ".join(method for method in methods if method)
        yield _figure_row(figure) | {"task": "" if index else group.group, "scored by": scored_by}


def _figure_row(figure: summary_pb2.MetricFigure) -> dict[str, str]:
    return {
        "metric": figure.metric,
        _MEAN: words.mean_and_half_width(figure),
        _INTERVAL: words.interval(figure),
        "n": str(figure.n),
    }


def _facts(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> Iterator[tuple[str, Cell]]:
    """Lines below the table, each with its name in bold."""
    yield "", _state_line(run)
    if sentence := decision_sentence(run):
        yield "Decision", sentence
    for change in run.changes:
        if change.action == "refuse":
            yield "Not judged", change.detail
    if not summary.tasks:
        return
    if run.order.dataset_id:
        yield "Answers", _answers(run, summary)
    failed = words.failures(dict(summary.failures)) or "none"
    yield "Failures of the machinery", f"{failed} (of {summary.total} samples; never scored)"
    if run.order.metrics or not run.order.dataset_id:
        yield "Unparsed answers", _unparsed(run, summary)
    usage = summary.usage
    cached = f" ({usage.cached_tokens} from a cache)" if usage.cached_tokens else ""
    thought = f" ({usage.reasoning_tokens} of reasoning)" if usage.reasoning_tokens else ""
    yield "Tokens", f"{usage.prompt_tokens} prompt{cached}, {usage.completion_tokens} completion{thought}"
    if summary.HasField("cost"):
        yield "Cost", words.priced(summary.cost, summary.price)
    if summary.gpu_seconds:
        yield "GPU time", words.duration(summary.gpu_seconds)
    yield "Time", _time(run, summary)
    if run.order.reuse_answers:
        yield "Answers of earlier runs", f"{run.reused_answers}, without times and costs"
    yield from _caveats(run, summary)


def _caveats(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> Iterator[tuple[str, Cell]]:
    """Conditions under which a figure means something else than its name says."""
    share = summary.unparsed / summary.answered if summary.answered else None
    if warning := unparsed_warning(share, is_judging=run.order.HasField("judge")):
        yield "Warning", Text(warning, "yellow")
    if suspicions := suspicions_of(summary):
        yield "Rollouts", Text(suspicions, "yellow")
    stand_ins = [task for task in summary.tasks if task.is_stand_in]
    if stand_ins:
        names = (f"{task.task} ({task.row_source})" if task.row_source else task.task for task in stand_ins)
        yield "Stand-in rows, not the official split", "; ".join(names)
    for group in summary.groups:
        if group.missing_tasks:
            yield f"{group.group} without", ", ".join(group.missing_tasks)
    if summary.is_truncated_left:
        yield "Long prompts", "cut from the left to fit the model's context"
    for sentence in contamination_sentences(summary):
        yield "Contamination", sentence
    for problem in summary.problems:
        yield "Undefined", problem
    spreads = [
        f"{task.task} {figure.metric} {figure.within_std:.4f}"
        for task in summary.tasks
        for figure in task.metrics
        if figure.HasField("within_std")
    ]
    if spreads:
        yield "Mean spread of a sample over its rollouts", ", ".join(spreads)


def _state_line(run: run_pb2.Run) -> Text:
    style = words.STATE_STYLES.get(run.state, "")
    line = Text.assemble("Run ", (run.run_id, "bold"), " ", (words.state_word(run.state), style))
    if run.state == run_pb2.RUN_STATE_FAILED and run.error.message:
        line.append(f": {run.error.message}")
    return line


def _answers(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    answered = f"{summary.answered:,} of {summary.total:,} to {words.benchmark(run)}"
    return answered if run.order.metrics else f"{answered}, kept and not scored: no metric was ordered"


def _unparsed(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    if not (summary.unparsed and summary.answered):
        return str(summary.unparsed)
    share = summary.unparsed / summary.answered
    effect = "they have no score" if run.order.HasField("judge") else "they count as not right"
    return f"{summary.unparsed} ({share:.1%} of the answers; {effect})"


def _time(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> str:
    total = words.elapsed_seconds(run)
    parts = [f"{words.duration(total)} in all"] if total else []
    asked = summary.answered - summary.reused_answers
    if total and asked:
        parts.append(_speed(asked, total, summary.answering_seconds, run.order.model))
    parts.append(f"{summary.mean_timing.total_seconds * 1000:.0f} ms per answer")
    return ", ".join(parts)


def _speed(answers: int, total: float, answering: float, model: str) -> str:
    """With and without the time before the first request, where that is a part that one would notice."""
    whole = f"{answers / total:.1f} samples/s"
    before = total - answering
    if not answering or before < _NOTICED_SHARE * total:
        return whole
    # A provider has its models loaded, or loads them while it answers.
    is_loaded_here = model.startswith(_LOADED_HERE)
    before_first = f"the {words.duration(before)} of planning{' and loading the model' * is_loaded_here}"
    return f"{whole} with and {answers / answering:.1f} samples/s without {before_first}"


def _timing_rows(timing: summary_pb2.TimingSummary) -> Iterator[list[str]]:
    """One unit per row. Times that no answer has are left out."""
    times = {
        "queue": timing.queue,
        "first token": timing.first_token,
        "between tokens": timing.between_tokens,
        "whole answer": timing.total,
        "tokens": timing.tokens_per_second,
    }
    for name, spread in times.items():
        is_rate = name == "tokens"
        unit, factor = ("/s", 1.0) if is_rate else ("s", 1.0) if spread.p50 >= 1 else ("ms", 1000.0)
        if spread.n:
            figures = (_three_digits(factor * getattr(spread, each)) for each in _PERCENTILES)
            yield [name, unit, *figures, str(spread.n)]


def _three_digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
