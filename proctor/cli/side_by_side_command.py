"""`proctor side-by-side`: what several runs answered to the same rows."""

from functools import partial
from typing import Annotated

import typer

from proctor.cli.command_options import AsJson, Gateway, Page
from proctor.cli.exit_codes import ExitCode
from proctor.cli.filter_options import (
    MaxLength,
    MaxScore,
    MinLength,
    MinScore,
    OfMetric,
    OnlyGolden,
    RowPart,
    TextPart,
    is_set,
    refuse_empty_range,
)
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.side_by_side_view import print_side_by_side
from proctor.cli.terminal import Terminal, execute
from proctor.client import ProctorClient
from proctor.client_errors import Refused
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import results_service_pb2

_FEWEST, _MOST = 2, 6


def side_by_side(
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID", help="Ids of 2 to 6 runs.")],
    task: Annotated[str, typer.Option(help="Task of a suite, where the runs have several.")] = "",
    differing: Annotated[
        bool, typer.Option("--differing", help="Only rows to which they said something different.")
    ] = False,
    row_id: RowPart = "",
    text: TextPart = "",
    metric: OfMetric = "",
    min_score: MinScore = None,
    max_score: MaxScore = None,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    golden: OnlyGolden = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Rows on a page.")] = 10,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show what several runs answered to the same rows, in the order of the first run."""
    terminal = Terminal(as_json)
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
        filter=chosen if is_set(chosen) else None,
        page_size=limit,
        page_token=page,
    )

    execute(terminal, partial(_show, terminal, request, gateway))


async def _show(
    terminal: Terminal, request: answer_pb2.ListSideBySideRequest, gateway: str | None
) -> ExitCode:
    if not _FEWEST <= len(request.run_ids) <= _MOST:
        raise Refused(f"Name {_FEWEST} to {_MOST} runs.", "INVALID_PARAMETER")
    refuse_empty_range(request.filter)
    async with ProctorClient(find_gateway(gateway)) as client:
        runs = [await client.get_run(run_id) for run_id in request.run_ids]
        rows, next_page = await client.answers.side_by_side(request)
    if terminal.is_json:
        terminal.emit({"rows": [document(row) for row in rows], "next_page_token": next_page})
    else:
        print_side_by_side(terminal.out, runs, rows, next_page)
    return ExitCode.OK
