"""How a command reaches its gateway: the address, the call, and the program's own name for hints."""

import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NoReturn

from proctor.cli.render.terminal import Terminal, execute
from proctor.client.errors import Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.stack.options import DEFAULT_GATEWAY_GRPC, default_state_dir
from proctor.stack.state import StackState, read_stack_state

_NAME = "proctor"

Work = Callable[[ProctorClient, Terminal], Awaitable[ExitCode | None]]


def with_gateway(work: Work, gateway: str | None, as_json: bool, user: str = "") -> NoReturn:
    """Runs a command with a client of its gateway, and exits with its code."""
    terminal = Terminal(as_json)

    async def connected() -> ExitCode | None:
        async with ProctorClient(find_gateway(gateway), user=user) as client:
            return await work(client, terminal)

    execute(terminal, connected)


def find_gateway(named: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The named address, else the local stack's, else PROCTOR_GATEWAY_GRPC_ADDRESS, else the default.

    With PROCTOR_STATE_DIR only the stack of that folder is meant, never another one on the default port.
    """
    if named:
        return named
    stack = local_stack(environ)
    if stack and stack.gateway_grpc:
        return stack.gateway_grpc
    address = environ.get("PROCTOR_GATEWAY_GRPC_ADDRESS", "")
    # With port 0 the gateway listens on a port that this command cannot know.
    if address and not address.endswith(":0"):
        return address
    if stack is None and environ.get("PROCTOR_STATE_DIR"):
        raise Unreachable(
            f"No stack runs on {default_state_dir(environ, Path.cwd())} (PROCTOR_STATE_DIR): start one with "
            "`proctor up`, or name a gateway with --gateway (PROCTOR_GATEWAY)."
        )
    return DEFAULT_GATEWAY_GRPC


def local_stack(environ: Mapping[str, str] = os.environ) -> StackState | None:
    return read_stack_state(default_state_dir(environ, Path.cwd()))


def program_name() -> str:
    """How a hint calls this program: `proctor` if the shell finds it, else its path."""
    own = Path(sys.executable).absolute().with_name(_NAME)
    found = shutil.which(_NAME)
    if not own.exists() or (found and Path(found).samefile(own)):
        return _NAME
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
