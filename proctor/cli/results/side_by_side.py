"""`proctor side-by-side`: the answers of several runs to the same rows, one block per row."""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from proctor.cli.gateway import with_gateway
from proctor.cli.options import AsJson, Gateway, Page
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import Terminal, say
from proctor.cli.render.verbatim import quoted, write_verbatim
from proctor.cli.results.answers import (
    MaxLength,
    MaxScore,
    MinLength,
    MinScore,
    OfMetric,
    OnlyGolden,
    RowPart,
    TextPart,
    answer_text,
    failure_text,
    filter_or_none,
    refuse_empty_range,
    scores_text,
    shortened,
)
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, results_service_pb2, run_pb2

_MIN_RUNS, _MAX_RUNS = 2, 6


def side_by_side(
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID", help="Ids of 2 to 6 runs.")],
    task: Annotated[str, typer.Option(help="Task of the suite, if the runs have several.")] = "",
    differing: Annotated[bool, typer.Option("--differing", help="Only rows with different answers.")] = False,
    row_id: RowPart = "",
    text: TextPart = "",
    metric: OfMetric = "",
    min_score: MinScore = None,
    max_score: MaxScore = None,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    golden: OnlyGolden = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Rows per page.")] = 10,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show the answers of several runs to the same rows, in the order of the first run."""
    chosen = results_service_pb2.OutcomeFilter(
        row_id=row_id,
        text=text,
        metric=metric,
        min_score=min_score,
        max_score=max_score,
        min_characters=min_length,
        max_characters=max_length,
        is_golden=golden,
    )
    request = answer_pb2.ListSideBySideRequest(
        run_ids=run_ids,
        task=task,
        only_differing=differing,
        filter=filter_or_none(chosen),
        page_size=limit,
        page_token=page,
    )

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        if not _MIN_RUNS <= len(run_ids) <= _MAX_RUNS:
            raise Refused(f"Name {_MIN_RUNS} to {_MAX_RUNS} runs.", "INVALID_PARAMETER")
        refuse_empty_range(chosen)
        runs = [await client.get_run(run_id) for run_id in run_ids]
        rows, next_page = await client.answers.side_by_side(request)
        if terminal.is_json:
            terminal.emit({"rows": [document(row) for row in rows], "next_page_token": next_page})
        else:
            _print_rows(terminal.out, runs, rows, next_page)

    with_gateway(work, gateway, as_json)


def _print_rows(
    console: Console, runs: Sequence[run_pb2.Run], rows: Sequence[answer_pb2.SideBySideRow], next_page: str
) -> None:
    for letter, run in zip(ascii_uppercase, runs, strict=False):
        say(console, Text.assemble((f"{letter}  {run.order.model}", "bold"), (f"  run {run.run_id}", "dim")))
    for row in rows:
        console.rule(row.row_id or f"row {row.doc_id}", align="left", style="dim")
        write_verbatim(console, shortened(row.prompt))
        if row.target:
            say(console, Text.assemble(("expected  ", "bold"), quoted(row.target)))
        for letter, answer in zip(ascii_uppercase, row.answers, strict=False):
            mark = "*" if answer.outcome.is_golden else " "
            style = "yellow" if row.is_differing else ""
            say(console, Text.assemble((f"{letter}{mark} ", style), _answer(answer)))
    if not rows:
        say(console, "No row matches.", style="dim")
    if next_page:
        say(console, f"The next page: --page {next_page}", style="dim")


def _answer(answer: answer_pb2.SideBySideAnswer) -> Text:
    recorded = answer.outcome
    if not answer.HasField("outcome"):
        return Text("no answer yet", "dim")
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        return Text(failure_text(recorded.outcome.failure), "red")
    scores = scores_text(recorded)
    return Text.assemble(quoted(answer_text(recorded)), (f"  {scores}", "dim") if scores else "")
