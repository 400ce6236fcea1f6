"""The local stack: `proctor up`, `proctor down`, `proctor status`."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from proctor.cli.gateway_address import find_gateway, local_stack
from proctor.cli.options import AsJson, Gateway
from proctor.cli.queue.tables import print_queue
from proctor.cli.render.documents import Json, document, stack_document
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.client.errors import Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.stack.errors import StackError
from proctor.stack.options import default_state_dir
from proctor.stack.state import StackState

_NEEDS_STACK = "The local stack is not installed: pip install 'proctor[stack]'."


def up(  # noqa: PLR0917  # options of a command, given by name
    model: Annotated[
        list[str] | None,
        typer.Option(help="vllm/starter, a model folder, a hub id or openai/NAME; repeat for several."),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(help="NAME=PROVIDER/MODEL: another name of a model; repeat for several."),
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="HTTP port; 0 picks one.")] = None,
    grpc_port: Annotated[int | None, typer.Option(min=0, max=65535, help="gRPC port; 0 picks one.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Come back once it serves.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start Postgres, NATS and the services on this machine, and keep them running until Ctrl-C."""
    terminal = Terminal(as_json)
    try:
        from proctor.cli.stack import start as stack_start  # noqa: PLC0415  # needs the extra `stack`, other commands do not
    except ModuleNotFoundError:
        terminal.complain(_NEEDS_STACK)
        raise typer.Exit(ExitCode.REFUSED) from None
    if as_json and not detach:
        terminal.complain("--json needs --detach: in the foreground `up` prints as it goes.")
        raise typer.Exit(ExitCode.REFUSED)
    ports = stack_start.Ports(http=port, grpc=grpc_port)
    asked = stack_start.AskedStack(model or [], alias or [], ports)
    start = stack_start.start_detached if detach else stack_start.serve
    raise typer.Exit(start(asked, terminal))


def down(as_json: AsJson = False) -> None:
    """Stop the local stack; its data stays."""
    from proctor.stack.stop import stop_stack  # noqa: PLC0415  # one command's need

    terminal = Terminal(as_json)
    state_dir = default_state_dir(os.environ, Path.cwd())
    try:
        was_running = stop_stack(state_dir)
    except StackError as error:
        terminal.complain(str(error))
        raise typer.Exit(error.exit_code) from None
    if as_json:
        terminal.emit({"stopped": was_running})
    else:
        terminal.out.print("The stack was stopped." if was_running else f"No stack runs on {state_dir}.")


def status(gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Show the local stack, the live workers and what runs."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        stack = None if gateway else local_stack()
        async with ProctorClient(find_gateway(gateway), timeout_seconds=5) as client:
            try:
                queue = await client.queue.show()
            except Unreachable as error:
                return _tell_unreachable(terminal, stack, error)
        if as_json:
            shown: dict[str, Json] = {"stack": stack_document(stack)}
            shown |= {"workers": [document(worker) for worker in queue.workers]}
            terminal.emit({**shown, "runs": [document(run) for run in (*queue.running, *queue.waiting)]})
        else:
            _print_stack(terminal, stack)
            print_queue(terminal.out, queue)
        return ExitCode.OK

    execute(terminal, work)


def _tell_unreachable(terminal: Terminal, stack: StackState | None, error: Unreachable) -> ExitCode:
    if terminal.is_json:
        failure: Json = {"reason": error.reason, "message": error.message}
        terminal.emit({"stack": stack_document(stack), "error": failure})
    else:
        _print_stack(terminal, stack)
    say(terminal.err, error.message, style="red")
    return ExitCode.UNREACHABLE


def _print_stack(terminal: Terminal, stack: StackState | None) -> None:
    if stack is None:
        return
    say(
        terminal.out,
        f"Stack {stack.phase}: http://{stack.gateway_http} (page: /docs), gRPC {stack.gateway_grpc}, "
        f"supervisor {stack.supervisor_pid}",
    )
    table = Table()
    for column in ("child", "state", "pid", "restarts", "log"):
        table.add_column(column)
    for name, child in stack.children.items():
        table.add_row(name, child.state, str(child.pid or ""), str(child.restarts), child.log)
    terminal.out.print(table)
