"""The local stack as a JSON document."""

from collections.abc import Mapping
from dataclasses import asdict

from proctor.cli.render.words import JsonValue
from proctor.cli.stack.child_figures import ChildFigures
from proctor.stack.state import StackState


def stack_document(stack: StackState | None, figures: Mapping[str, ChildFigures] | None = None) -> JsonValue:
    """The stack as `--json` prints it, without the environment, the DSN and the password of NATS."""
    if stack is None:
        return None
    return {
        "supervisor_pid": stack.supervisor_pid,
        "phase": stack.phase,
        "gateway_http": stack.gateway_http,
        "gateway_grpc": stack.gateway_grpc,
        "nats_url": f"nats://{stack.nats_url.rpartition('@')[2]}",
        "children": {
            name: asdict(child) | _figures_of(name, figures or {}) for name, child in stack.children.items()
        },
    }


def _figures_of(name: str, figures: Mapping[str, ChildFigures]) -> dict[str, JsonValue]:
    return {"figures": asdict(figures[name])} if name in figures else {}
