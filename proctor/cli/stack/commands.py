"""`proctor up`, `down`, `status`, `doctor` and `nats-users`: the local stack, and users of another NATS."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from proctor.cli.gateway import api_key, find_gateway, local_stack
from proctor.cli.options import AsJson, Gateway
from proctor.cli.program import with_program_name
from proctor.cli.queue import print_queue
from proctor.cli.render.table import Cell, numbers, table, texts
from proctor.cli.render.terminal import Terminal, execute, report_error, say
from proctor.cli.render.words import JsonValue, document
from proctor.cli.stack.child_figures import ChildFigures, read_figures
from proctor.cli.stack.document import stack_document
from proctor.cli.stack.extra import needing_stack
from proctor.client.errors import Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.stack.defaults import default_state_dir
from proctor.stack.doctor.examine import examine
from proctor.stack.doctor.finding import Finding, Severity
from proctor.stack.errors import PoolsFileUnusable, StackError
from proctor.stack.servers.nats_permissions import authorization_block, password_variable, permissions_of
from proctor.stack.state import StackState
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.values import messaging
from proctor.values.providers.errors import InvalidPools
from proctor.values.providers.pools_file import parse_pools

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.MISSING: "red"}


def up(  # noqa: PLR0917  # options of a command, given by name
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="openai/NAME, vllm/starter, vllm/OWNER/NAME of the hub, or ./FOLDER; repeat. Default: any "
            "of the providers whose key or address is set, and vllm/starter where vLLM is installed."
        ),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(help="NAME=PROVIDER/MODEL: another name of a model; repeat for several."),
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="HTTP port; 0 picks one.")] = None,
    grpc_port: Annotated[int | None, typer.Option(min=0, max=65535, help="gRPC port; 0 picks one.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return once the stack serves.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start Postgres, NATS and the services on this machine, and keep them running until Ctrl-C."""
    terminal = Terminal(as_json)
    with needing_stack(terminal):
        from proctor.cli.stack import start  # noqa: PLC0415  # needs the extra `stack`, other commands do not
    if as_json and not detach:
        terminal.print_error("--json needs --detach: in the foreground `up` prints as it goes.")
        raise typer.Exit(ExitCode.REFUSED)
    request = start.StackRequest(model or [], alias or [], http_port=port, grpc_port=grpc_port)
    raise typer.Exit((start.start_detached if detach else start.serve)(request, terminal))


def down(as_json: AsJson = False) -> None:
    """Stop the local stack; its data is kept."""
    from proctor.stack.stop import stop_stack  # noqa: PLC0415  # needs the extra `stack`

    terminal = Terminal(as_json)
    state_dir = default_state_dir(os.environ, Path.cwd())
    try:
        was_running = stop_stack(state_dir)
    except StackError as error:
        raise typer.Exit(report_error(terminal, error)) from None
    sentence = "The stack was stopped." if was_running else f"No stack runs on {state_dir}."
    terminal.report({"stopped": was_running}, sentence)


def status(gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Show the local stack, the live workers and the runs."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        stack = _local_stack(is_needed=not gateway)
        figures = await read_figures(stack) if stack else {}
        shown: dict[str, JsonValue] = {"stack": stack_document(stack, figures)}
        if stack and not as_json and not gateway:
            _print_stack(terminal, stack, figures)
        address = find_gateway(gateway)
        async with ProctorClient(address, api_key=api_key(address), timeout_seconds=5) as client:
            try:
                queue = await client.queue.GetQueue(queue_pb2.GetQueueRequest())
            except Unreachable as error:
                if as_json:
                    terminal.emit(shown | {"error": {"reason": error.reason, "message": error.message}})
                say(terminal.err, error.message, style="red")
                return ExitCode.UNREACHABLE
        if as_json:
            shown["workers"] = [document(worker) for worker in queue.workers]
            shown["runs"] = [document(run) for run in (*queue.running, *queue.pending)]
            shown["refused_streams"] = [document(stream) for stream in queue.refused_streams]
            shown["full_disks"] = [document(disk) for disk in queue.full_disks]
            terminal.emit(shown)
        else:
            print_queue(terminal.out, queue)
        return ExitCode.OK

    execute(terminal, work)


def _local_stack(*, is_needed: bool) -> StackState | None:
    """None for a state folder that cannot be trusted, where a gateway was named."""
    try:
        return local_stack()
    except StackError:
        if is_needed:
            raise
        return None


def _print_stack(terminal: Terminal, stack: StackState, figures: Mapping[str, ChildFigures]) -> None:
    say(
        terminal.out,
        f"Stack {stack.phase}: http://{stack.gateway_http} (API: /docs), gRPC {stack.gateway_grpc}, "
        f"supervisor {stack.supervisor_pid}",
    )
    rows = (
        (name, child.state, str(child.pid or ""), str(child.restarts), figures.get(name, ChildFigures()).text)
        for name, child in stack.children.items()
    )
    columns = (*texts("child", "state"), *numbers("pid", "restarts"), *texts("figures"))
    terminal.out.print(table(terminal.out, columns, rows))
    folders = dict.fromkeys(str(Path(child.log).parent) for child in stack.children.values())
    say(terminal.out, f"Logs, one file a child: {', '.join(folders)}")


def doctor(as_json: AsJson = False) -> None:
    """Check what this machine has for the local stack, what is missing and how to get it."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        found = await examine(os.environ, Path.cwd())
        is_missing = any(finding.severity is Severity.MISSING for finding in found)
        if as_json:
            terminal.emit({"ok": not is_missing, "checks": [asdict(finding) for finding in found]})
        else:
            terminal.out.print(table(terminal.out, texts("", "check", "found"), map(_cells, found)))
            say(terminal.out, _summary(found))
        return ExitCode.FAILED if is_missing else ExitCode.OK

    execute(terminal, work)


def _cells(finding: Finding) -> tuple[Cell, ...]:
    found = Text(with_program_name(finding.message))
    if finding.advice:
        found.append(f"\n→ {with_program_name(finding.advice)}", style="bold")
    return Text(finding.severity.value, style=_STYLES[finding.severity]), finding.name, found


def _summary(found: Sequence[Finding]) -> str:
    counts = {severity: sum(finding.severity is severity for finding in found) for severity in Severity}
    if counts[Severity.MISSING]:
        return f"{counts[Severity.MISSING]} missing, {counts[Severity.WARNING]} to look at: see the arrows."
    if counts[Severity.WARNING]:
        return f"The stack can run; {counts[Severity.WARNING]} to look at: see the arrows."
    return "Nothing is missing."


def nats_users(
    pools_file: Annotated[Path, typer.Argument(help="The pools file of the installation.")],
    as_json: AsJson = False,
) -> None:
    """Print the users of NATS with their permissions, as a block of the configuration of nats-server."""
    terminal = Terminal(as_json)
    try:
        pools = [pool.name for pool in parse_pools(pools_file.read_text(encoding="utf-8")).pools]
    except (OSError, UnicodeDecodeError, InvalidPools) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise typer.Exit(report_error(terminal, PoolsFileUnusable(file=pools_file, reason=reason))) from None
    if as_json:
        variables: dict[str, JsonValue] = {user: password_variable(user) for user in permissions_of(pools)}
        workers: dict[str, JsonValue] = {pool: messaging.worker_user(pool) for pool in pools}
        terminal.emit({"password_variables": variables, "worker_users": workers})
    else:
        typer.echo(authorization_block(pools), nl=False)
