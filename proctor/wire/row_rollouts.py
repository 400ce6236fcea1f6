"""How often a run of an order of rollouts works on each task."""

from proctor.v1 import run_pb2


def row_rollouts(order: run_pb2.RunOrder, tasks: int) -> list[int]:
    """By the index of the task; 0 for one that the run leaves out."""
    return list(order.row_rollouts) or [max(1, order.rollouts)] * tasks
