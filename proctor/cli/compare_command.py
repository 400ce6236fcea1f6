"""`proctor compare`: what two or more runs or models prove about each other."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

import typer

from proctor.cli.command_options import AsJson, Gateway
from proctor.cli.comparison_tables import print_comparison, print_flips
from proctor.cli.exit_codes import ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.json_documents import document
from proctor.cli.terminal import Terminal, execute, say
from proctor.client import Compared, ProctorClient
from proctor.client_errors import Refused
from proctor.v1 import comparison_pb2
from proctor.v1 import comparison_service_pb2 as comparing_pb2

_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class FlipChoice:
    """Which samples that differ are listed."""

    task: str
    metric: str
    limit: int | None


def compare(
    *,
    names: Annotated[
        list[str], typer.Argument(metavar="RUN|MODEL", help="Ids of runs, or models with --suite; 2 to 6.")
    ],
    suite: Annotated[str, typer.Option(help="Compare the models' latest complete runs of it.")] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Only this metric; repeat for several. Else each task's main one."),
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeat for several.")] = None,
    flips: Annotated[
        str, typer.Option(metavar="TASK", help="Also list its samples on which the two differ.")
    ] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="List no more of them.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare although scored in different ways; it is said so.")
    ] = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs or models, paired by sample: difference, interval, p and verdict per task."""
    terminal = Terminal(as_json)
    compared = Compared(names, suite, metric or (), task or (), force)
    chosen = FlipChoice(flips, metric[0] if metric else "", limit) if flips else None

    async def work() -> ExitCode:
        if chosen and len(names) != 2:
            raise Refused("--flips is about two runs or models, not more.", "INVALID_PARAMETER")
        async with ProctorClient(find_gateway(gateway)) as client:
            comparison = await client.comparisons.compare(compared)
            flipped = await _flips(client, comparison, chosen) if chosen else None
        _show(terminal, comparison, flipped)
        return ExitCode.OK

    execute(terminal, work)


async def _flips(
    client: ProctorClient, comparison: comparison_pb2.Comparison, chosen: FlipChoice
) -> list[comparison_pb2.Flip]:
    first, second = comparison.runs
    request = comparing_pb2.ListFlipsRequest(
        first_run_id=first.run_id,
        second_run_id=second.run_id,
        task=chosen.task,
        metric=chosen.metric,
        page_size=min(chosen.limit or _PAGE_SIZE, _PAGE_SIZE),
    )
    found: list[comparison_pb2.Flip] = []
    async with aclosing(client.comparisons.flips(request)) as flips:
        async for flip in flips:
            found.append(flip)
            if len(found) == chosen.limit:
                break
    return found


def _show(
    terminal: Terminal, comparison: comparison_pb2.Comparison, flips: list[comparison_pb2.Flip] | None
) -> None:
    if terminal.is_json:
        shown = document(comparison)
        terminal.emit(shown if flips is None else {**shown, "flips": [document(flip) for flip in flips]})
        return
    print_comparison(terminal.out, comparison)
    if flips is not None:
        print_flips(terminal.out, comparison, flips)
        say(terminal.out, f"{len(flips)} samples on which they differ.", style="dim")
