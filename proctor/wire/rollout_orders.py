"""What an order says of its rollouts: how often it works on each task, and whose answers they are."""

from proctor.v1 import run_pb2
from proctor.values.rollout import AgentKind
from proctor.wire.enums import member_of


def row_rollouts(order: run_pb2.RunOrder, tasks: int) -> list[int]:
    """By the index of the task; 0 for one that the run leaves out."""
    return list(order.row_rollouts) or [max(1, order.rollouts)] * tasks


def asks_no_model(order: run_pb2.RunOrder) -> bool:
    """Whether the model of the order only led to its workers."""
    return bool(_answers_instead(order))


def answering_model(order: run_pb2.RunOrder) -> str:
    """The model, or in words whose answers they are instead."""
    return _answers_instead(order) or order.model


def _answers_instead(order: run_pb2.RunOrder) -> str:
    kind = member_of(AgentKind, order.agent_kind)
    return kind.answers_instead if kind else ""
