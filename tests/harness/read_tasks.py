"""A folder of one task, read as the scheduler reads it."""

from pathlib import Path

from proctor.values.rollout import RolloutTask
from services.scheduler.rollouts.tasks.file_task_sets import read_path


def read_task(folder: Path) -> RolloutTask:
    [task] = read_path(folder)
    return task
