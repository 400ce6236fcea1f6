"""The actions that each state of a run allows."""

from collections.abc import Sequence

from proctor.v1 import run_pb2

_ACTIONS: dict[int, Sequence[str]] = {
    run_pb2.RUN_STATE_PENDING: ("pause", "cancel"),
    run_pb2.RUN_STATE_RUNNING: ("pause", "cancel"),
    run_pb2.RUN_STATE_PAUSED: ("resume", "cancel"),
    run_pb2.RUN_STATE_FAILED: ("retry", "delete"),
    run_pb2.RUN_STATE_CANCELLED: ("retry", "delete"),
    run_pb2.RUN_STATE_COMPLETED: ("delete",),
}


def actions_of(state: run_pb2.RunState.ValueType) -> Sequence[str]:
    """Actions in the order of their buttons; the dangerous one is the last."""
    return _ACTIONS.get(state, ())
