"""`proctor rescore`: the stored answers of a task under other filters or metrics, or to a judge."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.options import RunIdArgument, json_text, metric_use
from proctor.cli.render.table import numbers, table, texts
from proctor.cli.render.terminal import say
from proctor.cli.render.words import mean_and_half_width, option_value
from proctor.cli.runs.judge import JudgeOptions
from proctor.cli.runs.judge import judge as judge_run
from proctor.cli.suites.files import filter_list
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import run_pb2, summary_pb2
from proctor.values.judging.named_judge import DEFAULT_PROMPT, read_judge


async def rescore(
    session: Session,
    *,
    run_id: RunIdArgument,
    task: Annotated[str, typer.Option(help="A task of the run; not with --judge.")] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|JSON",
            help='Another metric, or \'{"metric": "f1", "average": "macro"}\'; repeat for several.',
        ),
    ] = None,
    filters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Other filters, YAML or JSON in the form of a filter_list."),
    ] = None,
    reasoning: Annotated[
        str, typer.Option(help="as-run | separate | keep: whether reasoning is scored with the answer.")
    ] = "as-run",
    judge: Annotated[
        str,
        typer.Option(
            metavar="MODEL[:PROMPT][@SCALE]",
            help="Let this model judge all answers instead, as `proctor judge` does, whose options say more.",
        ),
    ] = "",
) -> ExitCode:
    """Score stored answers with other filters or metrics, without asking the model. The record stays."""
    if judge:
        if task or metric or filters or reasoning != "as-run":
            raise Refused("A judge reads all answers by its prompt: leave out what is beside --judge.")
        return await _judge(session, run_id, judge)
    if not task:
        raise Refused("Name what is scored: --task NAME, or a judge of all answers, --judge MODEL.")
    request = rescore_pb2.RescoreTaskRequest(
        run_id=run_id,
        task=task,
        metrics=[metric_use(text) for text in metric or ()],
        filters_json=None if filters is None else filters_json(filters),
        reasoning=option_value(run_pb2.Reasoning, reasoning, "--reasoning", unset="as-run"),
    )
    response = await session.client.rescoring.RescoreTask(request)
    has_rollouts = bool(response.unscored) and (await session.client.run(run_id)).order.rollouts > 1
    session.terminal.show(response, partial(_print_rescored, has_rollouts=has_rollouts))
    return ExitCode.OK


async def _judge(session: Session, run_id: str, given: str) -> ExitCode:
    try:
        named = read_judge(given)
    except ValueError as error:
        raise Refused(f"--judge {error}.") from error
    options = JudgeOptions(model=named.model, prompt=named.prompt or DEFAULT_PROMPT, scale=named.scale)
    return await judge_run(session, run_id, options, waits=True)


def filters_json(path: Path) -> str:
    """Empty for an empty list of filters."""
    filters = filter_list(path)
    return json_text(filters) if filters else ""


def _print_rescored(
    console: Console, response: rescore_pb2.RescoreTaskResponse, *, has_rollouts: bool
) -> None:
    recorded, now = _by_metric(response.recorded.metrics), _by_metric(response.summary.metrics)
    metrics = dict.fromkeys((*recorded, *now))
    rows = ((name, recorded.get(name, ""), now.get(name, "")) for name in metrics)
    console.print(table(console, (*texts("metric"), *numbers("recorded", "now")), rows))
    say(console, f"{response.changed} answers are parsed differently than recorded.")
    unparsed = f"Unparsed: {response.summary.unparsed}, recorded {response.recorded.unparsed}"
    say(console, f"{unparsed}, of {response.summary.answered}.")
    _print_unscored(console, response, has_rollouts=has_rollouts)


def _print_unscored(
    console: Console, response: rescore_pb2.RescoreTaskResponse, *, has_rollouts: bool
) -> None:
    """Names each answer by the id of its row, or by the number of its sample if the row has none."""
    if not response.unscored:
        return
    is_one = response.unscored == 1
    answers = "1 answer" if is_one else f"{response.unscored} answers"
    say(console, f"{answers} cannot be scored so, and {'is' if is_one else 'are'} in no figure:")
    for answer in response.unscored_answers:
        name = answer.row_id or f"sample {answer.sample}"
        rollout = f", rollout {answer.rollout}" if has_rollouts else ""
        say(console, f"  {name}{rollout}: {answer.problem}")
    rest = response.unscored - len(response.unscored_answers)
    if rest:
        say(console, f"  and {rest} more")


def _by_metric(figures: Sequence[summary_pb2.MetricFigure]) -> dict[str, str]:
    return {figure.metric: mean_and_half_width(figure) for figure in figures}
