"""Starts the local stack for `proctor up`: in the foreground, or in the background until it serves."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.cli.gateway_address import program_name
from proctor.cli.render.documents import stack_document
from proctor.cli.render.terminal import ExitCode, Terminal, say
from proctor.stack.errors import StackError, StateFolderUnusable
from proctor.stack.foreground import serve_until_stopped
from proctor.stack.options import StackOptions, options_from_environment
from proctor.stack.pools.models import STARTER_MODEL, aliases_of, pools_of_names
from proctor.stack.state import StackState, read_stack_state
from proctor.stack.supervision.logs import tail

_LOOK_EVERY_SECONDS = 0.1
_LOG_NAME = "up.log"


@dataclass(frozen=True, slots=True)
class Ports:
    """Of the gateway; None leaves them to the environment and the defaults."""

    http: int | None = None
    grpc: int | None = None

    def applied(self, options: StackOptions) -> StackOptions:
        return replace(
            options,
            gateway_http_address=_with_port(options.gateway_http_address, self.http),
            gateway_grpc_address=_with_port(options.gateway_grpc_address, self.grpc),
        )

    def arguments(self) -> list[str]:
        named = (("--port", self.http), ("--grpc-port", self.grpc))
        return [text for option, port in named if port is not None for text in (option, str(port))]


def _with_port(address: str, port: int | None) -> str:
    return address if port is None else f"{address.rpartition(':')[0]}:{port}"


@dataclass(frozen=True, slots=True)
class AskedStack:
    """What the command line says; `aliases` as NAME=PROVIDER/MODEL. Without a model: the starter model."""

    models: Sequence[str] = ()
    aliases: Sequence[str] = ()
    ports: Ports = Ports()

    def options(self, terminal: Terminal) -> StackOptions:
        pools = pools_of_names(self.models or [STARTER_MODEL], terminal.progress.print)
        options = self.ports.applied(options_from_environment(os.environ, pools))
        return replace(options, aliases=aliases_of(self.aliases, pools))

    def arguments(self) -> list[str]:
        models = [text for model in self.models for text in ("--model", model)]
        aliases = [text for alias in self.aliases for text in ("--alias", alias)]
        return [*models, *aliases, *self.ports.arguments()]


def serve(asked: AskedStack, terminal: Terminal) -> ExitCode:
    try:
        options = asked.options(terminal)
        asyncio.run(serve_until_stopped(options, terminal.progress.print))
    except StackError as error:
        terminal.complain(str(error))
        return ExitCode(error.exit_code)
    return ExitCode.OK


def start_detached(asked: AskedStack, terminal: Terminal) -> ExitCode:
    """The model is built here, where its progress is seen; the stack goes to a process of its own."""
    try:
        options = asked.options(terminal)
        log_path = _log_path(options.state_dir)
    except StackError as error:
        terminal.complain(str(error))
        return ExitCode(error.exit_code)
    command = (sys.executable, "-P", "-m", "proctor.cli", "up", *asked.arguments())
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    stack = _wait_until_running(process, options.state_dir)
    if stack is None:
        terminal.complain(tail(log_path) or "The stack ended without a word.")
        return ExitCode(process.returncode) if process.returncode in list(ExitCode) else ExitCode.FAULT
    _tell_running(terminal, stack)
    return ExitCode.OK


def _log_path(state_dir: Path) -> Path:
    path = state_dir / "logs" / _LOG_NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateFolderUnusable(state_dir, error.strerror or str(error)) from error
    return path


def _wait_until_running(process: subprocess.Popen[bytes], state_dir: Path) -> StackState | None:
    """None when the process ended first. It has its own limits: each child starts in time or is given up."""
    while process.poll() is None:
        stack = read_stack_state(state_dir)
        if stack and stack.phase == "running" and stack.supervisor_pid == process.pid:
            return stack
        time.sleep(_LOOK_EVERY_SECONDS)  # noqa: TID251  # a poll that ends with the process
    return None


def _tell_running(terminal: Terminal, stack: StackState) -> None:
    if terminal.is_json:
        terminal.emit(stack_document(stack))
    else:
        where = f"http://{stack.gateway_http} (page: /docs), gRPC {stack.gateway_grpc}"
        say(terminal.out, f"The stack serves {where}; `{program_name()} down` stops it.")
