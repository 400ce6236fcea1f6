"""Ports of sets of tasks: how an archive is read and its tasks written."""

from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from proctor.values.rollout import RolloutTask

# An archive, its name, and overrides by the names of folders. Raises a DomainError for what is not a set.
ReadTasks = Callable[[BinaryIO, str, Mapping[str, str]], Sequence[RolloutTask]]
WriteTasks = Callable[[Sequence[RolloutTask]], bytes]
