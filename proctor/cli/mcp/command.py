"""`proctor mcp`: the server that coding agents start, over stdin and stdout."""

import typer

from proctor.cli.gateway import Session
from proctor.exit_codes import ExitCode


async def mcp(session: Session) -> None:
    """Serve tools for coding agents over stdin and stdout (MCP), with the permissions of PROCTOR_API_KEY."""
    try:
        from proctor.cli.mcp.server import make_server  # noqa: PLC0415  # needs the extra `mcp`
    except ModuleNotFoundError:
        session.terminal.print_error("The MCP server is not installed: pip install 'proctor-eval[mcp]'.")
        raise typer.Exit(ExitCode.REFUSED) from None
    await make_server(session.client).run_stdio_async()
