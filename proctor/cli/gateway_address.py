"""Which gateway a command talks to: the one that was named, else the local stack's, else the default port."""

import os
from collections.abc import Mapping
from pathlib import Path

from proctor.stack.stack_options import DEFAULT_GATEWAY_GRPC, default_state_dir
from proctor.stack.stack_state import StackState, read_stack_state


def find_gateway(named: str | None, environ: Mapping[str, str] = os.environ) -> str:
    if named:
        return named
    stack = local_stack(environ)
    return stack.gateway_grpc if stack and stack.gateway_grpc else DEFAULT_GATEWAY_GRPC


def local_stack(environ: Mapping[str, str] = os.environ) -> StackState | None:
    return read_stack_state(default_state_dir(environ, Path.cwd()))
