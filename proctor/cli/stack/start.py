"""Starts the local stack for `proctor up`: in the foreground, or in the background until it serves."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.cli.program import program_name
from proctor.cli.render.terminal import Terminal, report_error
from proctor.cli.stack.document import stack_document
from proctor.exit_codes import ExitCode
from proctor.stack.errors import StackError, StateFolderUnusable
from proctor.stack.local_stack import serve_until_stopped
from proctor.stack.options import StackOptions, options_from_environment
from proctor.stack.pools import aliases_of, choose_model, default_pools, pools_for
from proctor.stack.state import StackState, make_state_folder, read_stack_state
from proctor.stack.supervision.process import log_tail, open_log

_POLL_SECONDS = 0.1
_LOG_NAME = "up.log"


@dataclass(frozen=True, slots=True)
class StackRequest:
    """The options of `proctor up`. No model means the default pools; a port of None is the configured one.

    Each alias is NAME=PROVIDER/MODEL.
    """

    models: Sequence[str] = ()
    aliases: Sequence[str] = ()
    http_port: int | None = None
    grpc_port: int | None = None

    def options(self, terminal: Terminal) -> StackOptions:
        report, chosen = terminal.progress.print, [choose_model(name) for name in self.models]
        pools = pools_for(chosen, os.environ, report) if chosen else default_pools(os.environ, report)
        options = options_from_environment(os.environ, pools)
        return replace(
            options,
            gateway_http_address=_with_port(options.gateway_http_address, self.http_port),
            gateway_grpc_address=_with_port(options.gateway_grpc_address, self.grpc_port),
            aliases=aliases_of(self.aliases, pools),
        )

    def arguments(self) -> list[str]:
        """The same request as arguments of `proctor up`."""
        named = [
            *(("--model", model) for model in self.models),
            *(("--alias", alias) for alias in self.aliases),
            ("--port", self.http_port),
            ("--grpc-port", self.grpc_port),
        ]
        return [text for name, value in named if value is not None for text in (name, str(value))]


def _with_port(address: str, port: int | None) -> str:
    return address if port is None else f"{address.rpartition(':')[0]}:{port}"


def serve(request: StackRequest, terminal: Terminal) -> ExitCode:
    try:
        asyncio.run(serve_until_stopped(request.options(terminal), terminal.progress.print))
    except StackError as error:
        return report_error(terminal, error)
    return ExitCode.OK


def start_detached(request: StackRequest, terminal: Terminal) -> ExitCode:
    """Builds the model here, where its progress is visible, and runs the stack in a process of its own."""
    try:
        state_dir = request.options(terminal).state_dir
        log_path = _log_path(state_dir)
    except StackError as error:
        return report_error(terminal, error)
    command = (sys.executable, "-P", "-m", "proctor.cli", "up", *request.arguments())
    log_path.unlink(missing_ok=True)
    with open_log(log_path) as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    stack = _wait_until_running(process, state_dir)
    if stack is None:
        terminal.print_error(log_tail(log_path) or "The stack ended without an error message.")
        return next((code for code in ExitCode if code == process.returncode), ExitCode.INTERNAL)
    address = f"http://{stack.gateway_http} (API: /docs), gRPC {stack.gateway_grpc}"
    terminal.report(stack_document(stack), f"The stack serves {address}; `{program_name()} down` stops it.")
    return ExitCode.OK


def _log_path(state_dir: Path) -> Path:
    path = state_dir / "logs" / _LOG_NAME
    make_state_folder(state_dir)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise StateFolderUnusable(folder=state_dir, reason=error.strerror or str(error)) from error
    return path


def _wait_until_running(process: subprocess.Popen[bytes], state_dir: Path) -> StackState | None:
    """Returns None when the process ended first. Its own limits on each child bound the wait."""
    while process.poll() is None:
        stack = read_stack_state(state_dir)
        if stack and stack.phase == "running" and stack.supervisor_pid == process.pid:
            return stack
        time.sleep(_POLL_SECONDS)  # noqa: TID251  # a poll that ends with the process
    return None
