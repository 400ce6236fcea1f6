"""The MCP server: which tools it has, and how an error of the gateway reaches the agent."""

import functools
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from proctor.cli.mcp.orders import OrderTools
from proctor.cli.mcp.reading import ReadingTools
from proctor.client.errors import ClientError
from proctor.client.proctor_client import ProctorClient
from proctor.distribution import COMMANDS, NAME

# The registered name of another server is `proctor`.
_SERVER_NAME = COMMANDS[1]
_INSTRUCTIONS = """\
Proctor evaluates language models on benchmark suites and data sets. A usual order of calls: list_suites, \
list_models; estimate_run; order_run with a limit of cost; wait_for_run until is_final; results; compare to \
another run; read_answers for what went wrong. Quote a figure with its interval. compare says whether a \
difference is shown; not shown is not equal. Failures of the machinery are no answers: retry_run asks again \
for what is missing."""

P = ParamSpec("P")
R = TypeVar("R")


def make_server(client: ProctorClient) -> MCPServer[object]:
    orders, reading = OrderTools(client), ReadingTools(client)
    server: MCPServer[object] = MCPServer(
        name=_SERVER_NAME, version=version(NAME), instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    _add(server, reading.tools(), ToolAnnotations(read_only_hint=True))
    _add(server, orders.reading_tools(), ToolAnnotations(read_only_hint=True))
    _add(server, orders.changing_tools(), ToolAnnotations(read_only_hint=False, destructive_hint=False))
    _add(server, [orders.cancel_run], ToolAnnotations(read_only_hint=False, destructive_hint=True))
    return server


def _add(
    server: MCPServer[object],
    tools: Sequence[Callable[..., Awaitable[object]]],
    annotations: ToolAnnotations,
) -> None:
    for tool in tools:
        server.add_tool(_with_said_errors(tool), annotations=annotations)


def _with_said_errors(tool: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """The text of any other error would not reach the agent."""

    @functools.wraps(tool)
    async def call(*given: P.args, **named: P.kwargs) -> R:
        try:
            return await tool(*given, **named)
        except ClientError as error:
            raise ToolError(f"{error.message} ({error.reason})" if error.reason else error.message) from error

    return call
