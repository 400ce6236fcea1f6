"""`proctor open`: the pages of the local stack in the browser."""

import webbrowser
from typing import Annotated

import typer

from proctor.cli.gateway import page_address
from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal, execute
from proctor.client.errors import Unreachable
from proctor.exit_codes import ExitCode


def open_page(
    run_id: Annotated[
        str, typer.Argument(metavar="[RUN_ID]", help="Id of a run, for its page; without it the overview.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Open the pages of the local stack, or the page of a run, in the browser."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        address = page_address(run_id)
        if not address:
            raise Unreachable("No stack runs here: start one with `proctor up`.")
        is_opened = webbrowser.open(address)
        sentence = address if is_opened else f"No browser could be started here; the page is {address}"
        terminal.report({"address": address, "opened": is_opened}, sentence)
        return ExitCode.OK

    execute(terminal, work)
