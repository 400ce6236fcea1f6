"""Tasks as they are stored: one message."""

from collections.abc import Sequence

from proctor.v1 import rollout_pb2
from proctor.values.rollout import RolloutTask
from proctor.wire.values import ROLLOUT_TASK


def tasks_to_bytes(tasks: Sequence[RolloutTask]) -> bytes:
    """The same tasks give the same bytes."""
    message = rollout_pb2.RolloutTasks(tasks=[ROLLOUT_TASK.to_proto(task) for task in tasks])
    return message.SerializeToString(deterministic=True)


def tasks_from_bytes(content: bytes) -> Sequence[RolloutTask]:
    return [ROLLOUT_TASK.from_proto(task) for task in rollout_pb2.RolloutTasks.FromString(content).tasks]
