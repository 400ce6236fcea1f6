"""Which gateway a command talks to: the named one, else the local stack's, else where one would be."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from proctor.client.errors import Unreachable
from proctor.stack.options import DEFAULT_GATEWAY_GRPC, default_state_dir
from proctor.stack.state import StackState, read_stack_state


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


_NAME = "proctor"


def program_name() -> str:
    """`proctor` where the shell finds this very one, else its path: from the current folder where inside."""
    own = Path(sys.executable).absolute().with_name(_NAME)
    found = shutil.which(_NAME)
    if not own.exists() or (found and Path(found).samefile(own)):
        return _NAME
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
