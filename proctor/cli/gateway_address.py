"""Which gateway a command talks to: the named one, else the local stack's, else where one would be."""

import os
from collections.abc import Mapping
from pathlib import Path

from proctor.client_errors import Unreachable
from proctor.stack.stack_options import DEFAULT_GATEWAY_GRPC, default_state_dir
from proctor.stack.stack_state import StackState, read_stack_state


def find_gateway(named: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Whoever chose a folder means the stack there, and no other that may serve the default port."""
    if named:
        return named
    stack = local_stack(environ)
    if stack and stack.gateway_grpc:
        return stack.gateway_grpc
    if address := _set_address(environ):
        return address
    if stack is None and environ.get("PROCTOR_STATE_DIR"):
        raise Unreachable(
            f"No stack runs on {default_state_dir(environ, Path.cwd())} (PROCTOR_STATE_DIR): start one with "
            "`proctor up`, or name a gateway with --gateway (PROCTOR_GATEWAY)."
        )
    return DEFAULT_GATEWAY_GRPC


def local_stack(environ: Mapping[str, str] = os.environ) -> StackState | None:
    return read_stack_state(default_state_dir(environ, Path.cwd()))


def _set_address(environ: Mapping[str, str]) -> str:
    """Where a gateway of this environment listens; of port 0 nobody knows what became."""
    address = environ.get("PROCTOR_GATEWAY_GRPC_ADDRESS", "")
    return "" if address.endswith(":0") else address
