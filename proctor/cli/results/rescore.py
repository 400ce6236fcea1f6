"""`proctor export` and `proctor rescore`: stored answers as a file, or under another scoring."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway, RunId
from proctor.cli.parsing import json_text, metric_use
from proctor.cli.render.documents import document
from proctor.cli.render.table import compact_table
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.cli.render.words import mean_and_half_width
from proctor.cli.suites.files import filter_list
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import summary_pb2


def rescore(
    *,
    run_id: RunId,
    task: Annotated[str, typer.Option(help="A task of the run.")],
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
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Score stored answers with other filters or metrics, without asking the model. The record stays."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        request = rescore_pb2.RescoreTaskRequest(
            run_id=run_id,
            task=task,
            metrics=[metric_use(text) for text in metric or ()],
            filters_json=None if filters is None else filters_json(filters),
        )
        async with ProctorClient(find_gateway(gateway)) as client:
            response = await client.answers.rescore(request)
        if as_json:
            terminal.emit(document(response))
            return ExitCode.OK
        terminal.out.print(_rescored_table(terminal.out, response))
        say(terminal.out, f"{response.changed} answers are taken as something else than recorded.")
        unparsed = f"Unparsed: {response.summary.unparsed}, recorded {response.recorded.unparsed}"
        say(terminal.out, f"{unparsed}, of {response.summary.answered}.")
        _tell_unscored(terminal.out, response)
        return ExitCode.OK

    execute(terminal, work)


def filters_json(path: Path) -> str:
    """Empty for no filters at all."""
    filters = filter_list(path)
    return json_text(filters) if filters else ""


def _rescored_table(console: Console, response: rescore_pb2.RescoreTaskResponse) -> Table:
    table = compact_table(console)
    table.add_column("metric")
    for column in ("recorded", "now"):
        table.add_column(column, justify="right")
    recorded, now = _by_metric(response.recorded.metrics), _by_metric(response.summary.metrics)
    for name in dict.fromkeys((*recorded, *now)):
        table.add_row(name, recorded.get(name, ""), now.get(name, ""))
    return table


def _tell_unscored(console: Console, response: rescore_pb2.RescoreTaskResponse) -> None:
    """By the ids of rows, else by the numbers of samples."""
    if not response.unscored:
        return
    verb = "1 answer cannot" if response.unscored == 1 else f"{response.unscored} answers cannot"
    say(console, f"{verb} be scored so, and {'is' if response.unscored == 1 else 'are'} in no figure:")
    for answer in response.unscored_answers:
        name = answer.row_id or f"sample {answer.sample}"
        rollout = f", rollout {answer.rollout}" if answer.rollout else ""
        say(console, f"  {name}{rollout}: {answer.problem}")
    rest = response.unscored - len(response.unscored_answers)
    if rest:
        say(console, f"  and {rest} more")


def _by_metric(figures: Sequence[summary_pb2.MetricFigure]) -> dict[str, str]:
    return {figure.metric: mean_and_half_width(figure) for figure in figures}
