"""`proctor open`: the pages of the local stack in the browser."""

import uuid
import webbrowser
from typing import Annotated

import typer

from proctor.cli.gateway import api_key, local_stack, page_address
from proctor.cli.options import AsJson
from proctor.cli.render.terminal import Terminal, execute
from proctor.client.errors import NotFound, Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.v1.rollout_service_pb2 import GetRolloutsOrderRequest


def open_page(
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="Id of a run or of an order of rollouts; without it the overview."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Open the pages of the local stack, or the page of a run or an order of rollouts, in the browser."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        stack = local_stack()
        if not stack or not stack.gateway_http:
            raise Unreachable("No stack runs here: start one with `proctor up`.")
        address = page_address(await page_of(stack.gateway_grpc, wanted) if wanted else "")
        is_opened = webbrowser.open(address)
        sentence = address if is_opened else f"No browser could be started here; the page is {address}"
        terminal.report({"address": address, "opened": is_opened}, sentence)
        return ExitCode.OK

    execute(terminal, work)


async def page_of(gateway: str, wanted: str) -> str:
    """The path of the page of a run or an order, whichever has the id. Raises NotFound."""
    try:
        known = str(uuid.UUID(wanted.strip()))
    except ValueError:
        raise NotFound(
            f"{wanted} is not an id: `proctor runs` and `proctor rollouts list` print them."
        ) from None
    async with ProctorClient(gateway, api_key=api_key(gateway)) as client:
        try:
            await client.rollouts.GetRolloutsOrder(GetRolloutsOrderRequest(order_id=known))
        except NotFound:
            # Raises NotFound too, with the sentence of the gateway.
            await client.run(known)
            return f"runs/{known}"
    return f"rollouts/{known}"
